"""What edits of attention do to a model: effects of single edits, and sweeps over all heads or keys."""

from regard.ablation.measured_effects import effects
from regard.ablation.sweep import Ablation, ablate

__all__ = ["Ablation", "ablate", "effects"]
