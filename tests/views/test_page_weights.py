"""Weights read off the page in Chromium, against the definition in NumPy."""

import numpy as np
import torch

import regard
from parity import definition, tensors
from regard.recording import Call, Recording

BOUND = 2e-3


def recorded(q, k, v=None, **options):
    """A recording of one call with these tensors, ``(batch, head, length, channel)``."""
    options.setdefault("scale", q.shape[-1] ** -0.5)
    call = Call("layers.0", "encoder", 0, q, k, lse=torch.zeros(q.shape[:3]), v=v, **options)
    return Recording("Toy", [call])


def shown(opened, tmp_path, seen, **options):
    return opened(regard.page(seen, tmp_path / "x.html", **options)).read()


def assert_shows(page, wanted, call=0):
    found = page.weights(call)
    assert found.shape == wanted.shape
    assert np.isfinite(found).all()
    worst = np.abs(found - wanted).max(initial=0)
    assert worst <= BOUND
    # What the page says of itself is true, up to the last bits of a float32.
    assert abs(worst - page.ask(f"opened.calls[{call}].error")) < 1e-5
    assert (found[wanted == 0] == 0).all()


def test_plain(opened, tmp_path):
    q, k, v = tensors(2, heads=3, queries=7, keys=11, channels=5, dtype=torch.float32)
    page = shown(opened, tmp_path, recorded(q, k), batch=1)
    assert_shows(page, definition(q, k, v)["weights"][1])
