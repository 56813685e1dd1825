"""A text as it is written: a frame for each step, shaded by the row that writes it."""

import numpy as np
import pytest
import torch
from PIL import Image

import regard
from regard.errors import ArgumentError, RecordingError
from regard.recording import Recording, ScoredCall
from regard.recording.next_tokens import NextTokens

TOKENS = ["<s>", "Ġthe", "Ġcat", "Ġsat", "Ġon", "Ġ<b>", "$x$"]
BLUE = 40


def written(*, kind="decoder", pairs=((5, 2),), generated=None):
    """A causal head whose queries attend to the first token, but for the pairs."""
    n = len(TOKENS)
    q = torch.zeros(1, 2, n, n)
    q[..., 0] = 5.0
    for query, key in pairs:
        q[0, :, query] = 0.0
        q[0, :, query, key] = 9.0
    k = torch.eye(n).expand(1, 2, n, n).clone()
    mask = regard.masks.causal()
    scores = (q @ k.mT).masked_fill(~mask.dense(n, n), -torch.inf)
    seen = Recording("Toy", [ScoredCall("layer", kind, 3, q, k, scores.logsumexp(-1), scale=1.0, mask=mask)])
    seen.tokens = TOKENS
    if generated is not None:
        best = torch.zeros(n, 1, dtype=torch.int64)
        seen.next_tokens = NextTokens(("a",), best, torch.ones(n, 1), torch.ones(n - 1), generated)
    return seen


def frames(path):
    with Image.open(path) as picture:
        found = []
        for at in range(picture.n_frames):
            picture.seek(at)
            found.append((np.asarray(picture.convert("RGB")).astype(int), picture.info["duration"]))
    return found


def test_one_frame_for_each_step(tmp_path):
    found = frames(regard.figures.animate(written(), tmp_path / "x.gif", layer=3, head=1, seconds=0.2))
    assert len(found) == len(TOKENS)
    assert [time for _, time in found] == [200] * (len(TOKENS) - 1) + [600]
    # The text grows: each frame has more ink than the one before, until it is complete.
    ink = [(pixels.sum(-1) < 720).sum() for pixels, _ in found]
    assert ink[0] < ink[2] < ink[4]


def test_the_frames_begin_where_the_generation_does(tmp_path):
    found = frames(regard.figures.animate(written(generated=4), tmp_path / "x.gif", layer=3))
    assert len(found) == len(TOKENS) - 3
    assert len(frames(regard.figures.animate(written(), tmp_path / "y.gif", layer=3, start=5))) == 2


def test_the_key_that_is_attended_to_is_shaded_and_the_sink_is_not(tmp_path):
    found = frames(regard.figures.animate(written(), tmp_path / "x.gif", layer=3, head=0, start=4))
    resting, telling = found[0][0], found[1][0]

    def shaded(pixels):
        return ((pixels[..., 2] - pixels[..., 0] > BLUE) & (pixels.sum(-1) < 400)).sum()

    assert shaded(telling) > 2 * shaded(resting)


def test_a_translation(tmp_path):
    from regard.translator import embedded, look

    seen = look(embedded(), "The cat sat on the mat.")
    found = frames(regard.figures.animate(seen.recording, tmp_path / "x.gif", lang="zh"))
    assert len(found) == len(seen.translation)


def test_errors(tmp_path):
    animate = regard.figures.animate
    with pytest.raises(ArgumentError, match=r"saved as \.gif\. Got x\.mp4"):
        animate(written(), tmp_path / "x.mp4")
    with pytest.raises(ArgumentError, match=r"seconds must be more than 0"):
        animate(written(), tmp_path / "x.gif", seconds=0)
    with pytest.raises(ArgumentError, match=r"batch = 3"):
        animate(written(), tmp_path / "x.gif", layer=3, batch=3)
    with pytest.raises(ArgumentError, match=r"recorded heads \(0, 1\)\. Got head = 7"):
        animate(written(), tmp_path / "x.gif", layer=3, head=7)
    model = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True).eval()
    with torch.no_grad(), regard.watch(model, statistics=True) as summary:
        model(torch.randn(1, 4, 16))
    with pytest.raises(RecordingError, match="only statistics"):
        animate(summary, tmp_path / "x.gif", layer=0)
    with torch.no_grad(), regard.watch(model) as long:
        model(torch.randn(1, 320, 16))
    with pytest.raises(ArgumentError, match=r"at most 300 steps\. Got 320 steps"):
        animate(long, tmp_path / "x.gif", layer=0)
    assert not list(tmp_path.iterdir())
