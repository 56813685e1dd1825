"""``regard look talk.wav``: the transcript in the terminal and the page, in both languages; bad input."""

import re

import pytest
import soundfile

from app.command_line import run
from regard.app.speech_input import is_audio_file
from speech import small_whisper
from speech.small_whisper import noise

pytestmark = pytest.mark.usefixtures("elsewhere")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("whisper")
    small_whisper.model(times=True).save_pretrained(found)
    small_whisper.processor().save_pretrained(found)
    return found


@pytest.fixture
def talk(tmp_path):
    soundfile.write(tmp_path / "talk.wav", noise(2.3), 16_000)
    return "talk.wav"


def test_the_transcript_and_the_page(talk, folder, tmp_path):
    shown = run("look", talk, "--model", folder)
    assert shown.exit_code == 0, shown.output
    assert "2.3 s of audio" in shown.output
    assert "1·0 2·1" in shown.output
    assert re.search(r"\d\.\d\d–\d\.\d\d", shown.output)
    assert "look.html" in shown.output
    page = (tmp_path / "look.html").read_text(encoding="utf-8")
    assert '"speech"' in page
    assert "talk.wav" in page


def test_in_chinese_and_without_a_page(talk, folder, tmp_path):
    shown = run("look", talk, "--model", folder, "--no-page", "--lang", "zh")
    assert shown.exit_code == 0, shown.output
    assert "音频 2.3 秒" in shown.output
    assert list(tmp_path.glob("*.html")) == []


def test_heads_are_found_if_the_model_names_none(talk, tmp_path):
    # The fewest tokens of a random model move along the audio; what is tested is what is said about it.
    model = small_whisper.model(seed=1, alignment_heads=None)
    model.save_pretrained(tmp_path / "bare")
    small_whisper.processor().save_pretrained(tmp_path / "bare")
    shown = run("look", talk, "--model", tmp_path / "bare", "--no-page")
    said = " ".join(shown.output.split())
    assert ("heads that agree with each other" in said) == (shown.exit_code == 0)
    assert shown.exit_code == 0 or "heads that move along the audio" in said


def test_the_layer_to_begin_with(talk, folder, tmp_path):
    shown = run("look", talk, "--model", folder, "--layer", 0, "--head", 1, "--out", "other.html")
    assert shown.exit_code == 0, shown.output
    assert (tmp_path / "other.html").exists()
    wrong = run("look", talk, "--model", folder, "--layer", 9)
    assert wrong.exit_code != 0
    assert "layer must be one of those on the page" in " ".join(wrong.output.split())


@pytest.mark.parametrize(
    "options", [[], ["--model", "x", "--generate", 3], ["--model", "x", "--figure", "a.png"], ["--pair", "b"]]
)
def test_what_audio_has_no_use_for(talk, options):
    shown = run("look", talk, *options)
    assert shown.exit_code != 0
    assert "Audio must be read by a Whisper model" in " ".join(shown.output.split())


def test_another_model_is_refused(talk, model_folders):
    shown = run("look", talk, "--model", model_folders["bert"])
    assert shown.exit_code != 0
    assert "a folder with a Whisper model and its processor" in " ".join(shown.output.split())


def test_a_file_that_is_not_audio(folder, tmp_path):
    (tmp_path / "talk.mp3").write_text("no sound", encoding="utf-8")
    shown = run("look", "talk.mp3", "--model", folder)
    assert shown.exit_code != 0
    assert "must hold audio that can be read" in " ".join(shown.output.split())


def test_which_texts_are_files(talk, tmp_path):
    assert is_audio_file(talk)
    assert is_audio_file(str(tmp_path / talk))
    assert is_audio_file("missing.wav")
    assert not is_audio_file("I listened to\ntalk.wav")
    assert not is_audio_file("I listened to talk.wav")


def test_a_file_that_does_not_exist(folder):
    shown = run("look", "missing.wav", "--model", folder)
    assert shown.exit_code != 0
    assert "An audio file must exist. Got missing.wav." in " ".join(shown.output.split())


def test_audio_without_a_model(talk):
    shown = run("look", talk)
    assert "Got talk.wav. Name a model" in " ".join(shown.output.split())
