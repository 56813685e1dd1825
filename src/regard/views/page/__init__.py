"""Pages: a recording as one HTML file that computes its weights in the browser."""

from regard.views.page.notebook import Display, show
from regard.views.page.page_speech import speech_page
from regard.views.page.write_page import PageEstimate, estimate_page, page

__all__ = ["Display", "PageEstimate", "estimate_page", "page", "show", "speech_page"]
