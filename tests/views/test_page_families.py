"""A page of every family of models, read back in NumPy: it shows what the recording says."""

import numpy as np
import pytest
import torch

import regard
from recording.families import FAMILIES, LENGTH, inputs_of, padded
from views.decoding import Decoded

BATCH = 1  # the sequence that has padding


def assert_page_shows(seen, path):
    page = Decoded(regard.page(seen, path, batch=BATCH))
    assert len(page.header["calls"]) == len(seen)
    for number, call in enumerate(seen):
        exact = torch.stack([call.weights(head, batch=BATCH) for head in call.head_numbers]).numpy()
        assert np.abs(page.weights(number) - exact).max() < 2e-3
        statistics = page.arrays[page.header["calls"][number]["statistics"]]
        assert statistics.size == len(page.header["statistics"]) * call.heads


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", FAMILIES)
@torch.no_grad()
def test_a_forward_pass(tmp_path, name, side):
    family = FAMILIES[name]
    model = family.build()
    with regard.watch(model, values=True) as seen:
        model(**inputs_of(family, side))
    assert_page_shows(seen, tmp_path / "x.html")


@pytest.mark.parametrize("name", ["llama", "mistral", "gpt_oss", "t5"])
@torch.no_grad()
def test_generated_text(tmp_path, name):
    model = FAMILIES[name].build()
    ids, keep = padded(2, LENGTH, "left")
    with regard.watch(model) as seen:
        model.generate(input_ids=ids, attention_mask=keep, max_new_tokens=5, do_sample=False)
    assert_page_shows(seen, tmp_path / "x.html")


@torch.no_grad()
def test_a_page_of_a_saved_recording_is_the_same(tmp_path):
    family = FAMILIES["gemma2"]
    model = family.build()
    with regard.watch(model) as seen:
        model(**inputs_of(family, "left"))
    seen.tokens = [f"Ġt{i}" for i in range(LENGTH)]
    seen.save(tmp_path / "x.safetensors")
    pages = [
        regard.page(one, tmp_path / name).read_bytes()
        for one, name in ((seen, "a.html"), (regard.load(tmp_path / "x.safetensors"), "b.html"))
    ]
    assert pages[0] == pages[1]
