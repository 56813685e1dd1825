"""Models on tokens: padding, caches, tied weights, and that they learn."""

import pytest
import torch
import torch.nn.functional as F

from parity import assert_close
from regard import nn

POSITIONS = ["sinusoidal", "learned", "rotary", "alibi", "relative", "none"]
SOURCE = torch.tensor([[5, 6, 7, 8, 9], [9, 4, 3, 0, 0], [0, 5, 0, 8, 3]])  # 0 is padding
TARGET = torch.tensor([[1, 5, 6, 7], [1, 7, 0, 0], [1, 3, 4, 0]])


def seq2seq(**options):
    small = {"width": 12, "heads": 3, "hidden": 20, "encoder_layers": 2, "decoder_layers": 2, "length": 24}
    model = nn.Seq2Seq(11, 13, **{**small, **options}).double().eval()
    return _random(model)


def language_model(**options):
    small = {"width": 12, "heads": 3, "hidden": 20, "layers": 2, "length": 24}
    return _random(nn.LanguageModel(13, **{**small, **options}).double().eval())


def _random(model):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none", "rotary", "alibi", "relative"])
def test_a_padded_batch_equals_its_texts_alone(positions):
    model = seq2seq(positions=positions)
    together = model(SOURCE, TARGET)
    assert together.shape == (3, 4, 13)
    assert_close(together[:1], model(SOURCE[:1], TARGET[:1]), torch.float64)
    assert_close(together[1:2, :2], model(SOURCE[1:2, :3], TARGET[1:2, :2]), torch.float64)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("positions", POSITIONS)
def test_decoding_with_a_cache_gives_the_logits_of_the_whole(positions, norm):
    model = seq2seq(positions=positions, norm=norm, key_heads=1)
    whole, encoded, cache = model(SOURCE, TARGET), model.encode(SOURCE), model.new_cache()
    with torch.no_grad():
        parts = [model.decode(part, encoded, cache=cache) for part in TARGET.split((1, 2, 1), 1)]
    assert cache.length == 4
    assert_close(torch.cat(parts, 1), whole, torch.float64)


@pytest.mark.parametrize("positions", POSITIONS)
def test_a_language_model_reads_either_padding_and_caches(positions):
    model = language_model(positions=positions)
    alone = model(torch.tensor([[5, 6, 7]]))
    right, left = torch.tensor([[5, 6, 7, 0], [1, 2, 3, 4]]), torch.tensor([[0, 5, 6, 7], [1, 2, 3, 4]])
    assert_close(model(right)[:1, :3], alone, torch.float64)
    # Rotary tables are float32, so that turning by other angles differs in the eighth digit.
    dtype = torch.float32 if positions == "rotary" else torch.float64
    assert_close(model(left)[:1, 1:], alone, dtype)
    cache = model.new_cache()
    with torch.no_grad():
        parts = [model(part, cache=cache) for part in left.split((2, 1, 1), 1)]
    assert_close(torch.cat(parts, 1), model(left), torch.float64)


def test_later_tokens_change_nothing_before_them():
    model, changed = seq2seq(), TARGET.clone()
    changed[:, 2:] = 9
    assert_close(model(SOURCE, changed)[:, :2], model(SOURCE, TARGET)[:, :2], torch.float64)


def test_a_source_of_padding_alone_gives_no_nan():
    model = seq2seq().train()
    source = torch.zeros_like(SOURCE)
    model(source, TARGET).square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_tied_and_shared_embeddings():
    count = {}
    for tied, shared in ((True, False), (False, False), (True, True)):
        model = nn.Seq2Seq(20, 20, width=8, heads=2, hidden=8, tied=tied, shared=shared)
        count[tied, shared] = sum(p.numel() for p in model.parameters())
    assert count[False, False] - count[True, False] == 20 * 8 + 20  # a projection with its bias
    assert count[True, False] - count[True, True] == 20 * 8
    assert sum(tensor.numel() for tensor in model.state_dict().values()) == count[True, True]


def test_a_copy_loads_what_was_saved():
    model, copy = seq2seq(), seq2seq()
    copy.load_state_dict(model.state_dict())
    assert_close(copy(SOURCE, TARGET), model(SOURCE, TARGET), torch.float64)


def test_it_learns_to_turn_a_text_around():
    chance = torch.Generator().manual_seed(0)
    model = nn.Seq2Seq(8, 8, width=32, heads=4, hidden=64, encoder_layers=1, decoder_layers=1, dropout=0.0)
    adam = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(200):
        source = torch.randint(2, 8, (32, 5), generator=chance)
        target = torch.cat([torch.ones(32, 1, dtype=torch.long), source.flip(1)], 1)
        loss = F.cross_entropy(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
    source = torch.randint(2, 8, (16, 5), generator=chance)
    found = nn.generate(model, source, start=1, max_new_tokens=5).tokens
    assert (found == source.flip(1)).float().mean() > 0.9
