"""Step-by-step explanations with real numbers, demonstrations, and timing of the variants."""

from regard.lessons.explain_text import explain
from regard.lessons.registry import Demonstration, demonstration, demonstrations

__all__ = ["Demonstration", "demonstration", "demonstrations", "explain"]
