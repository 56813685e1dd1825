"""What is around regard: folders for caches, a browser, the encoding of the output."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from regard.machine import cache_folder

BROWSERS = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge",
    "chromium-headless-shell",
)  # fmt: skip
PLACES = {
    "darwin": ("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",),
    "win32": (
        r"C:\Program Files\Google\Chrome\Application\chrome.exe",
        r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
    ),
}
SIGNS = "✓→█…猫"
"""Characters that commands print; the last one only in Chinese."""


def browser() -> str | None:
    """Chromium or a browser based on it; None if none is installed."""
    for name in BROWSERS:
        found = shutil.which(name)
        if found is not None:
            return found
    return next((place for place in PLACES.get(sys.platform, ()) if Path(place).exists()), None)


def caches() -> dict[str, Path]:
    """The cache folders of regard, transformers and matplotlib."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises where there is none
    base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    hub = os.environ.get("HF_HUB_CACHE") or os.environ.get("HF_HOME") or base / "huggingface"
    return {"regard": cache_folder(), "Hugging Face": Path(hub), "matplotlib": _of_matplotlib(home, base)}


def _of_matplotlib(home: Path, base: Path) -> Path:
    named = os.environ.get("MPLCONFIGDIR")
    if named:
        return Path(named)
    return base / "matplotlib" if sys.platform.startswith("linux") else home / ".matplotlib"


def writable(folder: Path) -> bool:
    """Whether files can be written into a folder, or the folder can be made."""
    try:
        while not folder.exists():
            if folder.parent == folder:
                return False
            folder = folder.parent
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def output_encoding() -> tuple[str, bool]:
    """The encoding of standard output, and whether it has every character that commands print."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        SIGNS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return encoding, False
    return encoding, True
