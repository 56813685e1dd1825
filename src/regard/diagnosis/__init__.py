"""Whether regard works on this machine, point by point: what ``regard doctor`` says."""

from regard.diagnosis.examining import doctor
from regard.diagnosis.findings import Check, Diagnosis

__all__ = ["Check", "Diagnosis", "doctor"]
