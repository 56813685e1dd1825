"""Words with times: against transformers' own code, against NumPy, in batches, with beams, of any length."""

import itertools

import numpy as np
import pytest
import torch

import regard
from regard import speech
from regard.speech import token_times
from regard.speech.watched_window import weights_of_head
from speech import small_whisper
from speech.small_whisper import FIRST_TIME, FRAMES, RATE, noise


@pytest.fixture(scope="module")
def processor():
    return small_whisper.processor()


@pytest.fixture(scope="module")
def model():
    return small_whisper.model()


def eager_weights(model, processor, samples, sequence):
    """Cross-attention of an eager pass over a finished text, (layer, head, query, frame), and the logits."""
    inputs = processor.feature_extractor(samples, sampling_rate=RATE, return_tensors="pt")
    model.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            output = model(
                inputs["input_features"], decoder_input_ids=torch.tensor([sequence]), output_attentions=True
            )
    finally:
        model.set_attn_implementation("sdpa")
    return torch.stack(output.cross_attentions)[:, 0].double().numpy(), output.logits[0]


def prompt(times=False):
    return [small_whisper.START] if times else [small_whisper.START, small_whisper.NO_TIMES]


def test_words_have_times_in_order(model, processor):
    found = speech.words(model, processor, noise(0.9))
    assert len(found) > 2
    assert all(isinstance(word, speech.SpokenWord) for word in found)
    word, start, end, probability = found[0]
    assert word.strip() == word != ""
    assert 0 <= start <= end
    assert 0 < probability <= 1
    assert all(0 <= one.start <= one.end <= 0.9 for one in found)
    assert [one.start for one in found] == sorted(one.start for one in found)
    assert end <= found[1].start
    assert model.config._attn_implementation == "sdpa"


def test_weights_are_those_of_eager_attention_over_the_frames_of_audio(model, processor):
    samples = noise(0.64)
    (placed,) = speech.transcribe(model, processor, samples, every_layer=True).windows
    window = placed.window
    assert window.frames == 32
    whole, logits = eager_weights(model, processor, samples, [*prompt(), *window.tokens[:-1]])
    rows = whole[:, :, len(prompt()) - 1 :]
    for layer in range(3):
        for head in range(2):
            cropped = rows[layer, head, :, : window.frames]
            wanted = cropped / cropped.sum(1, keepdims=True)
            assert np.allclose(weights_of_head(window, layer, head, renormalize=True), wanted, atol=1e-6)
            assert np.allclose(weights_of_head(window, layer, head, renormalize=False), cropped, atol=1e-6)
    # Probabilities: softmax without the suppressed tokens.
    logits[:, model.generation_config.suppress_tokens] = -torch.inf
    expected = logits.softmax(-1)[len(prompt()) - 1 :].gather(1, torch.tensor(window.tokens)[:, None])
    assert np.allclose(window.probabilities, expected[:, 0], atol=1e-5)


def test_times_are_those_of_a_plain_computation(model, processor):
    """Standardize, median, mean, dynamic time warping, each written out."""
    samples = noise(0.8, seed=3)
    (placed,) = speech.transcribe(model, processor, samples, median=5).windows
    window = placed.window
    whole, _ = eager_weights(model, processor, samples, [*prompt(), *window.tokens[:-1]])
    parts = []
    for layer, head in model.generation_config.alignment_heads:
        weights = whole[layer, head, len(prompt()) - 1 :, : window.frames]
        weights = weights / weights.sum(1, keepdims=True)
        weights = (weights - weights.mean(0)) / weights.std(0)
        around = np.pad(weights, ((0, 0), (2, 2)), mode="reflect")
        parts.append([[np.median(row[at : at + 5]) for at in range(window.frames)] for row in around])
    gains = np.mean(parts, 0)
    best = np.full((len(gains) + 1, window.frames + 1), -np.inf)
    best[0, 0] = 0
    for i in range(1, len(best)):
        for j in range(1, window.frames + 1):
            best[i, j] = gains[i - 1, j - 1] + max(best[i - 1, j - 1], best[i - 1, j], best[i, j - 1])
    found = list(placed.frames)
    _check_onset(model, placed, whole)
    found[0] = 0  # the path begins in the first frame, the first word may begin later
    # The path through those frames collects as much as the best path: each row has its stretch.
    starts, total = found[:-1], 0.0
    for row, start in enumerate(starts):
        stop = starts[row + 1] if row + 1 < len(starts) else window.frames
        own = range(start, max(start + 1, stop))
        total += max(gains[row, own].sum(), gains[row, range(start, min(window.frames, stop + 1))].sum())
    assert total == pytest.approx(best[-1, -1], abs=1e-6)


def _check_onset(model, placed, whole):
    """The first word begins where its weights up to the next begin to be more than the mean, in sum."""
    parts = []
    for layer, head in model.generation_config.alignment_heads:
        weights = whole[layer, head, len(prompt()) - 1 :, : placed.window.frames]
        around = np.pad(weights / weights.sum(1, keepdims=True), ((0, 0), (2, 2)), mode="reflect")
        parts.append([[np.median(row[at : at + 5]) for at in range(placed.window.frames)] for row in around])
    shares = np.mean(parts, 0)
    stop = max(1, placed.frames[1])
    sums = [(shares[0, at:stop] - shares.mean()).sum() for at in range(stop)]
    assert sums[placed.frames[0]] == pytest.approx(max(sums), abs=1e-7)


def test_the_first_word_begins_after_the_silence_before_it():
    """Weights as a head that follows the speech has them, with 20 frames of silence first."""
    chance = np.random.default_rng(0)
    weights = chance.uniform(0, 0.002, (4, 60))
    for token, start in enumerate((20, 30, 40, 50)):
        weights[token, start : start + 10] += 0.09
    heads = [weights / weights.sum(1, keepdims=True)] * 2
    starts = token_times.first_frames(heads, 7)
    assert starts[0] == 0  # the path itself has to begin there
    assert abs(starts[1] - 30) <= 1
    assert token_times.onset(heads, 7, stop=int(starts[1])) == 20
    # Without silence nothing changes.
    spoken = [one[:, 20:] for one in heads]
    assert token_times.onset(spoken, 7, stop=10) == 0
    # A token that has no frame before the next one begins with it.
    assert token_times.onset(heads, 7, stop=0) == 0


def test_without_renormalizing_the_times_are_those_of_transformers(processor):
    for seed in range(4):
        model = small_whisper.model(seed=seed)
        samples = noise(0.7, seed)
        found = speech.transcribe(model, processor, samples, renormalize=False)
        (placed,) = found.windows
        inputs = processor.feature_extractor(
            samples, sampling_rate=RATE, return_tensors="pt", return_attention_mask=True
        )
        theirs = model.generate(**inputs, return_token_timestamps=True)
        tokens = [token for token in placed.window.tokens if token != small_whisper.END]
        assert theirs["sequences"][0].tolist() == tokens
        # transformers leaves out the row that writes the first token, and gives each token its end.
        weights = [weights_of_head(placed.window, *head, renormalize=False)[1:] for head in found.heads]
        own = token_times.first_frames(weights, 7) * placed.window.frame_seconds
        theirs = theirs["token_timestamps"][0].numpy()
        count = min(len(own), len(theirs))
        assert np.abs(own[:count] - theirs[:count]).max() <= 0.02 + 1e-6


def test_a_batch_is_what_its_parts_are(model, processor):
    audio = [noise(0.9, 1), noise(0.5, 2), noise(0.7, 3)]
    batch = speech.words(model, processor, audio)
    assert len(batch) == 3
    for samples, several in zip(audio, batch, strict=True):
        alone = speech.words(model, processor, samples)
        assert [word[:3] for word in alone] == [word[:3] for word in several]
        assert np.allclose(
            [word.probability for word in alone], [word.probability for word in several], atol=1e-4
        )


def test_beams_are_followed_to_the_text_that_was_returned(processor):
    model = small_whisper.model(seed=5)
    samples = noise(0.8, 4)
    (placed,) = speech.transcribe(model, processor, samples, num_beams=3).windows
    window = placed.window
    whole, _ = eager_weights(model, processor, samples, [*prompt(), *window.tokens[:-1]])
    layer, head = model.generation_config.alignment_heads[0]
    wanted = whole[layer, head, len(prompt()) - 1 :, : window.frames]
    assert np.allclose(weights_of_head(window, layer, head, renormalize=False), wanted, atol=1e-5)
    assert all(0 < one <= 1 for one in window.probabilities)


def test_beams_of_a_batch_may_end_at_different_lengths(processor):
    model = small_whisper.model(seed=6)
    audio = [noise(0.9, 1), noise(0.4, 2), noise(0.7, 3)]
    found = speech.transcribe(model, processor, audio, num_beams=3, length_penalty=-1.0)
    windows = [one.windows[0].window for one in found]
    assert len({len(window.tokens) for window in windows}) > 1
    layer, head = model.generation_config.alignment_heads[0]
    for samples, window in zip(audio, windows, strict=True):
        whole, _ = eager_weights(model, processor, samples, [*prompt(), *window.tokens[:-1]])
        wanted = whole[layer, head, len(prompt()) - 1 :, : window.frames]
        assert np.allclose(weights_of_head(window, layer, head, renormalize=False), wanted, atol=1e-5)


def test_longer_audio_is_read_window_by_window(processor):
    model = small_whisper.model(times=True)
    found = speech.transcribe(model, processor, noise(3.3))
    starts = [window.start for window in found.windows]
    assert len(starts) > 3
    assert starts[0] == 0
    assert all(0 < after - before <= 1.0 + 1e-9 for before, after in itertools.pairwise(starts))
    assert found.seconds == pytest.approx(3.3)
    assert all(0 <= word.start <= word.end <= 3.3 + 1e-6 for word in found.words)
    # No word of a window begins after the place where the next window begins, as the model's own time says.
    for window, after in zip(found.windows, [*found.windows[1:], None]):
        kept = max((places[-1] for places in window.words), default=-1)
        if after is not None and after.start - window.start < 1.0 - 1e-9:
            time = round((after.start - window.start) * 50) + FIRST_TIME
            assert time in window.window.tokens[kept + 1 :]


def test_a_batch_of_different_lengths(processor):
    model = small_whisper.model(times=True)
    audio = [noise(0.4, 1), noise(2.2, 2)]
    short, long = speech.transcribe(model, processor, audio)
    assert len(short.windows) == 1
    assert len(long.windows) > 1
    # The short one is read with times too, since they are read together.
    (alone,) = speech.transcribe(model, processor, [audio[0]], return_timestamps=True)
    assert [word[:3] for word in alone.words] == [word[:3] for word in short.words]


def test_only_the_layers_of_the_heads_are_recorded(model, processor):
    some = speech.transcribe(model, processor, noise(0.5))
    every = speech.transcribe(model, processor, noise(0.5), every_layer=True)
    assert [call.layer for call in some.windows[0].window.calls] == [1, 2]
    assert [call.layer for call in every.windows[0].window.calls] == [0, 1, 2]
    assert some.words == every.words


def test_heads_can_be_named(model, processor):
    found = speech.transcribe(model, processor, noise(0.8), heads=[(0, 1)])
    assert found.heads == ((0, 1),)
    assert not found.found
    assert [call.layer for call in found.windows[0].window.calls] == [0]


def test_a_transcript_is_a_table(model, processor, tmp_path):
    found = speech.transcribe(model, processor, noise(0.8))
    table = found.table()
    assert table.columns == ("word", "start", "end", "probability")
    assert [row["word"] for row in table] == found.text.split()
    found.to_csv(tmp_path / "words.csv")
    assert (tmp_path / "words.csv").read_text(encoding="utf-8").startswith("word,start,end,probability\n")
    assert "probability" in found.to_json()
    assert repr(found) == f"<Transcript: {len(found.words)} words in 0.8 s>"


def test_integers_are_samples_too(model, processor):
    samples = noise(0.5)
    whole = np.clip(np.round(samples * 32767), -32768, 32767).astype(np.int16)
    assert speech.words(model, processor, whole)[0].word == speech.words(model, processor, samples)[0].word
    tensor = torch.from_numpy(samples)
    assert speech.words(model, processor, tensor) == speech.words(model, processor, samples)


def test_speech_is_a_public_room():
    assert regard.speech.words is speech.words
    assert FRAMES == 50
