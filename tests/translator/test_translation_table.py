"""The table of word translations: as plain loops compute it, and unchanged by its file."""

import math
from collections import defaultdict

import pytest
import torch

from regard.errors import ModelFileError
from regard.translator.files import write_tensors
from regard.translator.sentence_batches import EncodedPair
from regard.translator.translation_table import FILE, FLOOR, LEAST, NONE, OLDER, ROUNDS, TranslationTable
from regard.translator.vocabulary import END, UNKNOWN

PIECES, CHARACTERS = 12, 40


def some_pairs(seed=0, count=60):
    chance = torch.Generator().manual_seed(seed)
    lengths = torch.randint(0, 6, (count, 2), generator=chance).tolist()
    return [
        EncodedPair(
            (*torch.randint(UNKNOWN, PIECES, (english + 1,), generator=chance).tolist(), END),
            tuple(torch.randint(4, CHARACTERS, (chinese,), generator=chance).tolist()),
        )
        for english, chinese in lengths
    ]


def by_loops(pairs):
    """p(piece | character), by the textbook."""
    chances = defaultdict(lambda: 1.0)
    for _ in range(ROUNDS):
        counts, totals = defaultdict(float), defaultdict(float)
        for pair in pairs:
            characters = [*pair.target, NONE]
            for piece in pair.source:
                if piece < 4:
                    continue
                whole = sum(chances[piece, character] for character in characters)
                for character in characters:
                    share = chances[piece, character] / whole
                    counts[piece, character] += share
                    totals[character] += share
        chances = defaultdict(float, {key: counts[key] / totals[key[1]] for key in counts})
    return chances


def expected(chances, source, candidate):
    characters = [*(token for token in candidate if token >= 4), NONE]
    total = 0.0
    for piece in source:
        if piece >= 4:
            kept = (chances[piece, character] for character in characters)
            total += math.log(max(FLOOR, sum(one for one in kept if one >= LEAST) / len(characters)))
    return total


@pytest.mark.parametrize("seed", range(3))
def test_it_is_what_loops_compute(seed, tmp_path):
    pairs = some_pairs(seed)
    table, chances = TranslationTable.learn(pairs, pieces=PIECES), by_loops(pairs)
    candidates = [pairs[0].target, (), (5, 5, 6), (CHARACTERS - 1, UNKNOWN), (CHARACTERS + 9,)]
    table.write(tmp_path)
    again = TranslationTable.read(tmp_path)
    for source in (pairs[1].source, pairs[2].source, (END,), (UNKNOWN, 7, 7, END)):
        wanted = [expected(chances, source, candidate) for candidate in candidates]
        assert table.log_probabilities(source, candidates) == pytest.approx(wanted, abs=1e-4)
        # Each probability is stored to 1 %.
        assert again.log_probabilities(source, candidates) == pytest.approx(wanted, abs=0.011 * len(source))


def test_a_table_of_an_earlier_version_is_read(tmp_path):
    table = TranslationTable.learn(some_pairs(), pieces=PIECES)
    tensors = {
        "starts": table.starts.to(torch.int32),
        "characters": table.characters.to(torch.int16),
        "chances": table.chances.half(),
    }
    write_tensors(tmp_path / FILE, tensors, {"format": OLDER})
    again = TranslationTable.read(tmp_path)
    assert torch.equal(again.starts, table.starts)
    torch.testing.assert_close(again.chances, table.chances, rtol=1e-3, atol=0)


def test_a_word_that_is_left_out_costs():
    source = EncodedPair((7, 8, END), (20, 21))
    table = TranslationTable.learn(
        [source, EncodedPair((7, END), (20,)), EncodedPair((8, END), (21,))], pieces=9
    )
    whole, half, twice = table.log_probabilities(source.source, [(20, 21), (20,), (20, 20)])
    assert whole > half
    assert whole > twice


def test_a_model_of_before_has_none_and_another_file_is_refused(tmp_path):
    assert TranslationTable.read(tmp_path) is None
    write_tensors(tmp_path / FILE, {"starts": torch.zeros(2)}, {"format": "something else"})
    with pytest.raises(ModelFileError, match="regard translation table 2"):
        TranslationTable.read(tmp_path)
