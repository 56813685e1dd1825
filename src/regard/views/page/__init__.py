"""Pages: a recording as one HTML file that computes its weights in the browser."""

from regard.views.page.display import Display, show
from regard.views.page.writing import PageEstimate, estimate_page, page

__all__ = ["Display", "PageEstimate", "estimate_page", "page", "show"]
