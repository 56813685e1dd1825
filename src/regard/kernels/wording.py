"""The texts that describe plans and costs, in English and Chinese."""

from __future__ import annotations

from pathlib import Path

from regard.languages import Texts

TEXTS = Texts(Path(__file__).parent / "texts")
