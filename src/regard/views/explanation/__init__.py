"""A calculation explained step by step: one payload for the terminal, Markdown, HTML and JSON."""

from regard.views.explanation.explanation_payload import Explanation, Grid, Step, StrongestKeys

__all__ = ["Explanation", "Grid", "Step", "StrongestKeys"]
