"""The texts that describe plans and costs, in English and Chinese."""

from __future__ import annotations

from regard.languages import Texts

TEXTS = Texts("kernels")
