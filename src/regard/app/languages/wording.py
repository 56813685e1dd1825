"""What commands print, in English and Chinese."""

from __future__ import annotations

from regard.languages import Texts

TEXTS = Texts("commands")
