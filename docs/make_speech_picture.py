"""Make the picture of docs/speech.md: the page of a sentence that espeak-ng says after a second of silence.

    python docs/make_speech_picture.py whisper-tiny.en

The argument is the folder of a Whisper model and its processor.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from page_pictures import Scene, chromium, small_png, taken

DOCS = Path(__file__).parent
SENTENCE = "The animal didn't cross the street because it was too tired."
SCREEN = (1200, 620)


def spoken(folder: Path) -> Path:
    """The sentence as a file of audio, with a second of silence before it."""
    import numpy as np
    import soundfile

    file = folder / "talk.wav"
    program = shutil.which("espeak-ng")
    if program is None:
        raise SystemExit("The sentence is spoken by espeak-ng: apt-get install espeak-ng.")
    options = ["-v", "en-us", "-s", "150", "-g", "8", "-w", str(file)]
    subprocess.run([program, *options, SENTENCE], check=True)  # noqa: S603 - the sentence above
    samples, rate = soundfile.read(file, dtype="float32")
    soundfile.write(file, np.concatenate([np.zeros(rate, np.float32), samples]), rate)
    return file


def main(model_folder: str) -> None:
    """Write pictures/page-speech.png."""
    from playwright.sync_api import sync_playwright

    from regard import speech
    from regard.views.page import speech_page

    model, processor = speech.load_speech_model(model_folder)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        file = spoken(Path(name))
        found = speech.transcribe(model, processor, file, every_layer=True)
        assert isinstance(found, speech.Transcript)
        for word, start, end, probability in found.words:
            print(f"{start:6.2f}–{end:.2f}  {word}  {probability:.0%}")
        page = speech_page(found, Path(name) / "talk.html", title="talk.wav")
        browser = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        first = found.windows[0].words[3][0]
        picture = taken(browser, page, Scene("speech", {"query": first}), screen=SCREEN)
        browser.close()
    target = DOCS / "pictures" / "page-speech.png"
    target.write_bytes(small_png(picture))
    print(f"{target.relative_to(DOCS)}  {target.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1])
