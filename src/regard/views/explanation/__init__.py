"""A calculation explained step by step: one payload for the terminal, Markdown, HTML and JSON."""

from regard.views.explanation.explanation_payload import Explanation, Grid, Look, Step

__all__ = ["Explanation", "Grid", "Look", "Step"]
