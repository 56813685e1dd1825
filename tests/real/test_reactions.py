"""A trained model that maps the atoms of a reaction: its mapping, and its head found without being told."""

import warnings
from importlib.util import find_spec

import numpy as np
import pytest

import regard
from real import reactions

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(find_spec("rxnmapper") is None, reason="rxnmapper is not installed"),
]


@pytest.fixture(scope="module")
def recorded():
    albert = reactions.model()
    found = []
    for reaction in reactions.REACTIONS:
        text, tokens = reactions.tokens_of(reaction)
        found.append((text, tokens, reactions.record(albert, tokens)))
    assert albert.config._attn_implementation == "sdpa"
    return found


def test_the_published_confidences(recorded):
    from rxnmapper.attention import AttentionScorer

    for (text, tokens, seen), published in zip(recorded, reactions.CONFIDENCES, strict=True):
        weights = seen.layer(reactions.LAYER).weights(reactions.HEAD).numpy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mapped = AttentionScorer(text, tokens, weights).generate_attention_guided_pxr_atom_mapping()
        assert float(np.prod(mapped["confidences"])) == pytest.approx(published, abs=2e-6)


def test_the_mapping_is_that_of_the_strongest_weights(recorded):
    """Without chemistry, most atoms of the product already go to the reactant's atom."""
    from rxnmapper.attention import AttentionScorer

    for text, tokens, seen in recorded:
        weights = seen.layer(reactions.LAYER).weights(reactions.HEAD).numpy()
        scorer = AttentionScorer(text, tokens, weights)
        atoms = [at for at, atom in enumerate(scorer.token2atom) if atom >= 0]
        cut = tokens.index(">>")
        before, after = [at for at in atoms if at < cut], [at for at in atoms if at > cut]
        found = regard.align(
            seen, [(reactions.LAYER, reactions.HEAD)], method="argmax", queries=after, keys=before
        )
        mapped = scorer.generate_attention_guided_pxr_atom_mapping()["pxr_mapping_vector"]
        right = [before[atom] == pair.key for atom, pair in zip(mapped, found.pairs, strict=True)]
        assert np.mean(right) > 0.6


def test_the_head_is_found_blind(recorded):
    """The model has one layer that runs twelve times; its head 5 does the mapping in the later runs."""
    for _, _, seen in recorded:
        table = regard.heads.alignment(seen, queries=reactions.products, keys=reactions.reactants)
        assert [row["head"] for row in table[:3]] == [reactions.HEAD] * 3
        rank = [(row["layer"], row["head"]) for row in table].index((reactions.LAYER, reactions.HEAD))
        print(f"layer {reactions.LAYER} head {reactions.HEAD} is number {rank + 1} of {len(table)}")
        assert rank < 8


def test_the_head_is_found_blind_in_other_reactions():
    """Averaged over reactions, as anybody would use it: the first three places are head 5."""
    albert = reactions.model()
    scores = {}
    for reaction in reactions.OTHERS:
        seen = reactions.record(albert, reactions.tokens_of(reaction)[1])
        for row in regard.heads.alignment(seen, queries=reactions.products, keys=reactions.reactants):
            scores.setdefault((row["layer"], row["head"]), []).append(row["score"])
    order = sorted(scores, key=lambda place: -np.mean(scores[place]))
    print("the best heads of eight other reactions:", *order[:6])
    assert [head for _, head in order[:3]] == [reactions.HEAD] * 3
