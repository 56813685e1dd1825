"""Make the picture of docs/speech.md: the page of a sentence that espeak-ng says after a second of silence.

python docs/make_speech_picture.py [whisper-tiny.en]

The argument is the folder of a Whisper model and its processor; by default it is the model that
``make test-real`` installs.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from page_pictures import Scene, taken
from picture_browser import started, write_picture

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

SENTENCE = "The animal didn't cross the street because it was too tired."
SCREEN = {"width": 1200, "height": 620}


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


def main(folder: str | None = None) -> None:
    """Write pictures/page-speech.png."""
    from regard import speech
    from regard.views.page import speech_page

    with tempfile.TemporaryDirectory() as name, started() as browser:
        file = spoken(Path(name))
        if folder is None:
            from real import whisper

            model, processor = whisper.parts()
        else:
            model, processor = speech.load_speech_model(folder)
        found = speech.transcribe(model, processor, file, every_layer=True)
        assert isinstance(found, speech.Transcript)
        for word, start, end, probability in found.words:
            print(f"{start:6.2f}–{end:.2f}  {word}  {probability:.0%}")
        page = speech_page(found, Path(name) / "talk.html", title="talk.wav")
        first = found.windows[0].words[3][0]
        scene = Scene("speech", {"query": first})
        write_picture("page-speech", taken(browser, page, scene, screen=SCREEN))


if __name__ == "__main__":
    main(*sys.argv[1:2])
