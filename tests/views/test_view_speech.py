"""Speech on a page: the transcript, the attention of each token over the spectrogram, and the sound."""

import numpy as np
import pytest

from regard import speech
from regard.errors import RegardError
from regard.speech.watched_window import weights_of_head
from regard.views.page.page_speech import speech_page
from speech import small_whisper
from speech.small_whisper import noise
from views.axe import RULES, violations

TITLE = "</script><b>talk"


@pytest.fixture(scope="module")
def transcript():
    parts = small_whisper.model(times=True), small_whisper.processor()
    return speech.transcribe(*parts, noise(2.3), every_layer=True)


@pytest.fixture
def page(opened, transcript, tmp_path):
    found = opened(speech_page(transcript, tmp_path / "speech.html", title=TITLE))
    found.page.wait_for_function("window.regard?.app?.view?.shown")
    return found.page


def mean_weights(transcript, window):
    own = transcript.windows[window].window
    return np.mean([weights_of_head(own, *head, renormalize=True) for head in transcript.heads], 0)


def grouped(page, rows):
    values, size = page.evaluate(
        "() => { const s = window.regard.app.view.shown; return [[...s.values], s.size]; }"
    )
    return np.reshape(values, (rows, -1)), size


def chosen(page):
    return page.locator(".speech-word[aria-pressed='true']").all_inner_texts()


def test_it_opens_on_the_transcript(page, transcript):
    assert page.locator('[role="tab"][aria-selected="true"]').inner_text().endswith("Speech")
    assert page.locator(".speech-word").all_inner_texts() == [word.word for word in transcript.words]
    assert page.locator(".speech-transcript p").count() == len(transcript.windows)
    assert chosen(page) == []
    assert "Click a word" in page.inner_text(".speech-caption")


def test_the_weights_are_those_of_the_heads(page, transcript):
    values, size = grouped(page, len(transcript.windows[0].tokens))
    wanted = mean_weights(transcript, 0)
    starts = np.arange(0, wanted.shape[1], size)
    assert np.allclose(values, np.add.reduceat(wanted, starts, 1), atol=1e-3)
    assert np.allclose(values.sum(1), 1, atol=1e-3)


def test_a_word_is_seen_and_heard(page, transcript):
    last = len(transcript.words) - 1
    word = transcript.words[last]
    page.evaluate(f"() => document.querySelectorAll('.speech-word')[{last}].click()")
    assert chosen(page) == [word.word]
    caption = page.inner_text(".speech-caption")
    assert f"{word.start:.2f}–{word.end:.2f} s" in caption
    # The page shows the window of the word.
    run = page.evaluate("() => window.regard.state.call.run")
    assert run == len(transcript.windows) - 1
    values, size = grouped(page, len(transcript.windows[run].tokens))
    wanted = mean_weights(transcript, run)
    assert np.allclose(values, np.add.reduceat(wanted, np.arange(0, wanted.shape[1], size), 1), atol=1e-3)


def test_the_sound_is_that_of_the_recording(page, transcript):
    sound = page.evaluate(
        """() => { const { sound } = window.regard.app.view; sound.play(0.5, 2.0, () => {});
        const { from, to } = sound.playing; const samples = sound.buffer.getChannelData(0);
        const found = [from, to, samples.length, sound.buffer.sampleRate, ...samples.slice(8000, 8010)];
        sound.stop(); return [...found, sound.playing]; }"""
    )
    assert sound[:4] == [0.5, 2.0, len(transcript.samples), 16_000]
    assert np.allclose(sound[4:14], transcript.samples[8000:8010], atol=1e-4)
    assert sound[-1] is None


def test_playing_shows_a_button_to_stop(page):
    page.click("text=Play all")
    page.wait_for_selector("text=Stop")
    page.click("text=Stop")
    page.wait_for_selector("text=Play all")


def test_choosing_a_head_shows_that_head(page, transcript):
    own = transcript.windows[0].window
    page.evaluate("() => window.regard.state.set({ call: 0, head: 1 })")
    values, size = grouped(page, len(own.tokens))
    wanted = weights_of_head(own, 0, 1, renormalize=True)
    assert np.allclose(values, np.add.reduceat(wanted, np.arange(0, wanted.shape[1], size), 1), atol=1e-3)
    page.click(".speech-tools .segments button >> nth=0")
    assert np.allclose(grouped(page, len(own.tokens))[0].sum(1), 1, atol=1e-3)


def test_clicking_the_spectrogram_chooses_the_word_spoken_there(page, transcript):
    word = max(transcript.words, key=lambda one: one.end - one.start)
    assert word.end - word.start > 0.03
    at = transcript.words.index(word)
    page.evaluate(f"() => document.querySelectorAll('.speech-word')[{at}].click()")
    page.keyboard.press("Escape")
    assert chosen(page) == []
    window = page.evaluate("() => window.regard.app.view.shown.window.start")
    x = page.evaluate(f"() => window.regard.app.view.x({((word.start + word.end) / 2 - window) / 0.02})")
    page.locator(".speech-canvas").click(position={"x": x, "y": 40})
    assert chosen(page) == [word.word]


def test_pointing_names_the_weight(page, transcript):
    box = page.locator(".speech-canvas").bounding_box()
    left = page.evaluate("() => window.regard.app.view.shown.left")
    page.mouse.move(box["x"] + left + 2, box["y"] + 104 + 24 + 8)
    said = page.inner_text(".speech-caption")
    assert "at 0.00–" in said
    assert said.split(": ")[-1] == f"{mean_weights(transcript, 0)[0, 0]:.4f}"


def test_arrows_walk_through_the_words(page, transcript):
    page.locator(".speech-word").first.focus()
    page.keyboard.press("ArrowRight")
    assert chosen(page) == [transcript.words[1].word]
    page.keyboard.press("ArrowLeft")
    assert chosen(page) == [transcript.words[0].word]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nobody_is_kept_out(page, theme):
    page.evaluate(f"() => window.regard.state.set({{ theme: '{theme}' }})")
    page.evaluate("() => document.querySelectorAll('.speech-word')[1].click()")
    assert violations(page, *RULES[theme]) == []


def test_in_chinese_and_as_a_file(page):
    page.evaluate("() => window.regard.state.set({ language: 'zh' })")
    assert "点击一个词" in page.inner_text(".speech-caption")
    svg = page.evaluate("() => window.regard.exportSvg()")
    assert "<svg" in svg
    assert svg.count("<image") == 2


def test_a_transcript_without_words(opened, tmp_path):
    parts = small_whisper.model(times=True, begin_suppress_tokens=list(range(12))), small_whisper.processor()
    found = speech.transcribe(*parts, np.zeros(8000, np.float32), every_layer=True, max_new_tokens=2)
    page = opened(speech_page(found, tmp_path / "silence.html")).page
    page.wait_for_function("window.regard?.app?.view?.shown")
    assert page.locator(".speech-word").count() == len(found.words)


def test_a_page_that_is_too_large(transcript, tmp_path, monkeypatch):
    monkeypatch.setattr("regard.views.page.page_speech.LARGEST", 1000)
    with pytest.raises(RegardError, match="Choose a shorter part of the audio"):
        speech_page(transcript, tmp_path / "large.html")
    assert speech_page(transcript, tmp_path / "large.html", force=True).exists()
