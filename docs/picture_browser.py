"""What the scripts that take pictures share: Chromium, the app on a free port, and small files.

Pages are waited for with :func:`until`, which ends with an error after two minutes: a picture of a page that
is not ready would be wrong, and nobody would notice.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

PICTURES = Path(__file__).parent / "pictures"
SCREEN = {"width": 1200, "height": 760}
PATIENCE = 120
"""Seconds until a page or the app is given up."""

PAINTED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))"


def chromium() -> str:
    """The path of Chromium."""
    names = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise SystemExit("Pictures are taken in Chromium: apt-get install chromium fonts-noto-cjk.")
    return found


@contextmanager
def started() -> Iterator[Any]:
    """Headless Chromium."""
    from playwright.sync_api import sync_playwright

    path = chromium()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Any, address: str, **options: Any) -> Iterator[Any]:
    """A page at an address, on a screen of the usual size without animations."""
    usual = {"viewport": SCREEN, "color_scheme": "light", "reduced_motion": "reduce", "locale": "en"}
    context = browser.new_context(**{**usual, **options})
    page = context.new_page()
    page.goto(address)
    try:
        yield page
    finally:
        context.close()


def until(page: Any, code: str) -> None:
    """Wait until an expression is true; the policy of the pages forbids the browser's own way."""
    end = time.monotonic() + PATIENCE
    while not page.evaluate(f"Boolean({code})"):
        if time.monotonic() > end:
            raise SystemExit(f"{page.url}: not true after {PATIENCE} s: {code}")
        page.wait_for_timeout(50)


def painted(page: Any) -> None:
    """Wait until everything that was asked for is on the screen."""
    page.evaluate(PAINTED)


@contextmanager
def served(recordings: Sequence[Path] = (), models: Sequence[Path] = ()) -> Iterator[str]:
    """The address of the app with some recordings and models, on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "regard", "serve", "--port", str(port)]
    command += [word for path in recordings for word in ("--recording", str(path))]
    command += [word for path in models for word in ("--model", str(path))]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:  # noqa: S603 - this project's own app
        try:
            _wait_for(server, port)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def _wait_for(server: subprocess.Popen[bytes], port: int) -> None:
    """Until the app answers."""
    for _ in range(2 * PATIENCE):
        if server.poll() is not None:
            raise SystemExit("regard serve ended before a picture was taken; its message is above.")
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.5)
    raise SystemExit(f"regard serve did not answer within {PATIENCE} s.")


def write_picture(name: str, screenshot: bytes) -> None:
    """Write a screenshot with 256 colours, which is a third of the size, to docs/pictures."""
    from PIL import Image

    small = BytesIO()
    picture = Image.open(BytesIO(screenshot)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    picture.save(small, format="png", optimize=True)
    (PICTURES / f"{name}.png").write_bytes(small.getvalue())
    print(f"pictures/{name}.png  {len(small.getvalue()) / 1000:.0f} kB", flush=True)
