"""Generation: with a cache as without, in a batch as alone, and as an exhaustive search says."""

from itertools import product

import pytest
import torch

from nn.test_models import language_model, seq2seq
from regard import nn, watch
from regard.errors import ArgumentError

SOURCES = torch.tensor([[5, 6, 7, 8], [9, 4, 0, 0], [3, 0, 0, 0]])
PROMPTS = torch.tensor([[5, 6, 7, 8], [0, 0, 9, 4], [0, 0, 0, 3]])
START, END = 1, 2
WAYS = [
    {},
    {"eos_token_id": END},
    {"num_beams": 3},
    {"num_beams": 4, "eos_token_id": END, "length_penalty": 0.6},
    {"temperature": 0.8},
    {"temperature": 1.3, "top_p": 0.7, "eos_token_id": END},
]


def chance(seed=7):
    return torch.Generator().manual_seed(seed)


def same(one, other):
    assert torch.equal(one.tokens, other.tokens)
    assert torch.equal(one.lengths, other.lengths)
    torch.testing.assert_close(one.log_probabilities, other.log_probabilities, atol=1e-5, rtol=0)
    torch.testing.assert_close(one.scores, other.scores, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "relative"])
def test_a_cache_changes_nothing(way, positions):
    model = seq2seq(positions=positions).float()
    found = [
        nn.generate(model, SOURCES, start=START, max_new_tokens=9, cache=cache, generator=chance(), **way)
        for cache in (True, False)
    ]
    same(*found)
    model = language_model(positions=positions).float()
    found = [
        nn.generate(model, PROMPTS, max_new_tokens=9, cache=cache, generator=chance(), **way)
        for cache in (True, False)
    ]
    same(*found)


@pytest.mark.parametrize("way", WAYS[:4], ids=str)
def test_a_batch_equals_its_texts_alone(way):
    model, speaker = seq2seq(), language_model(positions="learned")
    sources, prompts = (
        nn.generate(model, SOURCES, start=START, max_new_tokens=6, **way),
        nn.generate(speaker, PROMPTS, max_new_tokens=6, **way),
    )
    for row in range(3):
        own = SOURCES[row][SOURCES[row] != 0][None]
        alone = nn.generate(model, own, start=START, max_new_tokens=6, **way)
        assert alone.lists() == [sources.lists()[row]]
        assert alone.scores.item() == pytest.approx(sources.scores[row].item(), abs=1e-5)
        own = PROMPTS[row][PROMPTS[row] != 0][None]
        assert nn.generate(speaker, own, max_new_tokens=6, **way).lists() == [prompts.lists()[row]]


def test_prompts_may_be_padded_on_either_side_or_by_keep():
    model = language_model()
    right = torch.tensor([[5, 6, 7, 8], [9, 4, 0, 0], [3, 0, 0, 0]])
    left = nn.generate(model, PROMPTS, max_new_tokens=5)
    same(left, nn.generate(model, right, max_new_tokens=5))
    no_padding = language_model(padding=None)
    no_padding.load_state_dict(model.state_dict())
    filled = torch.where(right == 0, 12, right)
    with_keep = nn.generate(no_padding, filled, keep=right != 0, max_new_tokens=1)
    logits = no_padding(torch.tensor([[9, 4]]))[0, -1]
    assert with_keep.tokens[1, 0] == logits.argmax()


def test_greedy_is_the_best_token_each_time():
    model = seq2seq()
    found = nn.generate(model, SOURCES, start=START, max_new_tokens=5)
    tokens = torch.full((3, 1), START)
    for step in range(5):
        logits = model(SOURCES, tokens)[:, -1]
        logits[:, 0] = -torch.inf
        chances = logits.log_softmax(-1)
        torch.testing.assert_close(
            found.log_probabilities[:, step], chances.amax(-1).float(), atol=1e-5, rtol=0
        )
        tokens = torch.cat([tokens, logits.argmax(-1, keepdim=True)], 1)
    assert torch.equal(found.tokens, tokens[:, 1:])


def all_texts(model, source, longest):
    """The log-probability of every text that ends, or reaches the longest length."""
    others = [token for token in range(model.vocabulary) if token not in (0, END)]
    found = {}
    for length in range(1, longest + 1):
        lasts = [END] if length < longest else [END, *others]
        texts = [(*body, last) for body in product(others, repeat=length - 1) for last in lasts]
        tokens = torch.tensor([(START, *text) for text in texts])
        logits = model(source.expand(len(texts), -1), tokens[:, :-1])
        logits[..., 0] = -torch.inf
        chances = logits.log_softmax(-1).gather(-1, tokens[:, 1:, None])[..., 0].sum(1)
        found.update(zip(texts, chances.tolist()))
    return found


@pytest.mark.parametrize("length_penalty", [0.0, 0.7, 1.0, 2.0])
def test_beams_without_number_find_the_best_text(length_penalty):
    model = seq2seq(encoder_layers=1, decoder_layers=1)
    model.target = nn.TokenEmbedding(5, 12, dropout=0.0).double()
    for seed in range(3):
        torch.nn.init.normal_(model.target.table.weight, generator=chance(seed))
        scores = {
            text: value / len(text) ** length_penalty
            for text, value in all_texts(model, SOURCES[:1], 4).items()
        }
        best = max(scores, key=scores.__getitem__)
        found = nn.generate(
            model,
            SOURCES[:1],
            start=START,
            eos_token_id=END,
            max_new_tokens=4,
            num_beams=200,
            length_penalty=length_penalty,
        )
        assert tuple(found.lists()[0]) == best
        assert found.scores.item() == pytest.approx(scores[best], abs=1e-5)


def test_more_beams_do_not_do_worse_than_one_here():
    model = seq2seq()
    one, many = (
        nn.generate(model, SOURCES, start=START, max_new_tokens=6, num_beams=beams, length_penalty=0.0).scores
        for beams in (1, 12)
    )
    assert (many >= one - 1e-6).all()


def test_what_stands_behind_the_end():
    model = seq2seq()
    with torch.no_grad():
        model.target.table.weight[END] *= 3  # makes the end likely, sooner or later
    for beams in (1, 3):
        found = nn.generate(model, SOURCES, start=START, eos_token_id=END, max_new_tokens=12, num_beams=beams)
        for row, length in enumerate(found.lengths.tolist()):
            assert (found.tokens[row, length:] == model.padding).all()
            assert (found.log_probabilities[row, length:] == 0).all()
            assert (found.tokens[row, : length - 1] != END).all()
            if length < found.tokens.shape[1]:
                assert found.tokens[row, length - 1] == END
        assert found.tokens.shape[1] == int(found.lengths.max())
        assert all(END not in text for text in found.lists(end=END))


def test_chance_comes_from_the_generator():
    model = language_model()
    one, two, other = (
        nn.generate(model, PROMPTS, max_new_tokens=8, temperature=2.0, generator=chance(seed)).tokens
        for seed in (1, 1, 2)
    )
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_samples_follow_the_distribution():
    model = language_model()
    prompt = torch.tensor([[5, 6]]).expand(4000, 2)
    tokens = nn.generate(model, prompt, max_new_tokens=1, temperature=1.5, generator=chance()).tokens[:, 0]
    logits = model(prompt[:1])[0, -1] / 1.5
    logits[0] = -torch.inf
    found = torch.bincount(tokens, minlength=13) / 4000
    assert (found - logits.softmax(-1)).abs().max() < 0.035
    # A nucleus so small that one token fills it is greedy.
    small = nn.generate(model, prompt[:9], max_new_tokens=4, top_p=1e-6, generator=chance())
    assert torch.equal(small.tokens, nn.generate(model, prompt[:9], max_new_tokens=4).tokens)


def test_the_model_is_left_as_it_was():
    model = seq2seq(dropout=0.5).train()
    model.encoder.eval()  # frozen by its owner
    before = {name: module.training for name, module in model.named_modules()}
    first, second = (nn.generate(model, SOURCES, start=START, max_new_tokens=5) for _ in range(2))
    assert torch.equal(first.tokens, second.tokens)  # no dropout
    assert before == {name: module.training for name, module in model.named_modules()}
    model(SOURCES, SOURCES).sum().backward()  # masks that generation left behind serve training


def test_beams_can_be_chosen_by_somebody_else():
    model, offered = seq2seq(), {}
    options = {"start": START, "eos_token_id": END, "max_new_tokens": 6, "num_beams": 5}

    def last(prompt, candidates):
        offered[prompt] = candidates
        return len(candidates) - 1

    found = nn.generate(model, SOURCES, choose=last, **options)
    best = nn.generate(model, SOURCES, choose=lambda prompt, candidates: 0, **options)
    for row, candidates in offered.items():
        ranks = [one.log_probability / len(one.tokens) for one in candidates]
        assert ranks == sorted(ranks, reverse=True)
        assert len({one.tokens for one in candidates}) == 5
        for one, chosen in ((candidates[-1], found), (candidates[0], best)):
            assert one.tokens == tuple(chosen.lists()[row])
            assert one.ended is (one.tokens[-1] == END)
            assert one.log_probability == pytest.approx(chosen.log_probabilities[row].sum().item(), abs=1e-5)
            tokens = torch.tensor([[START, *one.tokens]])
            logits = model(SOURCES[row : row + 1], tokens[:, :-1])
            logits[..., 0] = -torch.inf
            again = logits.log_softmax(-1).gather(-1, tokens[:, 1:, None]).sum()
            assert one.log_probability == pytest.approx(again.item(), abs=1e-5)
    assert sorted(offered) == [0, 1, 2]
    with pytest.raises(ArgumentError, match="choose needs several beams"):
        nn.generate(model, SOURCES, start=START, choose=last)


def test_a_recording_follows_the_beam_that_was_chosen():
    model = seq2seq()
    with watch(model) as seen:
        found = nn.generate(
            model,
            SOURCES[:1],
            start=START,
            max_new_tokens=5,
            num_beams=4,
            choose=lambda prompt, candidates: len(candidates) - 1,
        )
    with watch(model) as whole:
        model(SOURCES[:1], torch.cat([torch.tensor([[START]]), found.tokens[:, :-1]], 1))
    for mine, other in zip(seen, whole, strict=True):
        torch.testing.assert_close(mine.weights(0), other.weights(0), atol=1e-6, rtol=0)
