"""Whether regard works on this machine, point by point: what ``regard doctor`` says."""

from regard.diagnosis.examination import doctor
from regard.diagnosis.finding import Check, Diagnosis

__all__ = ["Check", "Diagnosis", "doctor"]
