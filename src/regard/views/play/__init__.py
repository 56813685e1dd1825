"""Playables: self-contained pages on which a learner moves vectors, words and masks and sees what follows.

Each page computes in the browser, with the modules in ``assets``, and loads nothing.
"""

from regard.views.play.play_html import PLAYABLES, CourseLinks, Playable, playable_html

__all__ = ["PLAYABLES", "CourseLinks", "Playable", "playable_html"]
