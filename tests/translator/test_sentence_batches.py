import torch

from regard.translator.sentence_batches import EncodedPair, encode_pairs, epoch_batches, pad
from regard.translator.vocabulary import ChineseCharacters, EnglishTokens, Vocabularies


def sizes():
    chance = torch.Generator().manual_seed(1)
    return [tuple(row) for row in torch.randint(2, 20, (301, 2), generator=chance).tolist()]


def test_an_epoch_holds_every_example_once_in_batches_of_the_size():
    for epoch in range(3):
        batches = epoch_batches(sizes(), 100, seed=7, epoch=epoch)
        assert sorted(row for batch in batches for row in batch) == list(range(301))
        for batch in batches:
            targets, sources = zip(*(sizes()[row] for row in batch))
            assert len(batch) == 1 or len(batch) * (max(targets) + max(sources)) <= 100


def test_epochs_differ_and_seeds_repeat():
    first = epoch_batches(sizes(), 100, seed=7, epoch=0)
    assert first == epoch_batches(sizes(), 100, seed=7, epoch=0)
    assert first != epoch_batches(sizes(), 100, seed=7, epoch=1)
    assert first != epoch_batches(sizes(), 100, seed=8, epoch=0)


def test_little_is_padding():
    batches = epoch_batches(sizes(), 200, seed=0, epoch=0)
    padded = sum(len(batch) * max(sizes()[row][0] for row in batch) for batch in batches)
    assert padded < 1.2 * sum(target for target, _ in sizes())


def test_a_target_is_what_comes_before_the_following():
    batch = pad([EncodedPair((9, 8, 2), (5, 6, 7)), EncodedPair((9, 2), (5,))])
    assert batch.source.tolist() == [[9, 8, 2], [9, 2, 0]]
    assert batch.target.tolist() == [[1, 5, 6, 7], [1, 5, 0, 0]]
    assert batch.following.tolist() == [[5, 6, 7, 2], [5, 2, 0, 0]]


def test_what_does_not_fit_the_positions_is_left_out(pairs):
    vocabularies = Vocabularies(
        EnglishTokens.learn((pair.english for pair in pairs), 80),
        ChineseCharacters.learn(pair.chinese for pair in pairs),
    )
    longest = 6
    examples = encode_pairs(pairs, vocabularies, longest=longest)
    assert 0 < len(examples) < len(pairs)
    assert all(max(example.size) <= longest for example in examples)
