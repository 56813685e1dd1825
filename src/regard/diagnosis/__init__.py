"""Checks whether regard works on this machine; ``regard doctor`` prints the results."""

from regard.diagnosis.examination import doctor
from regard.diagnosis.finding import Check, Diagnosis

__all__ = ["Check", "Diagnosis", "doctor"]
