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


def scored(recordings):
    """The heads with half of the best score, by agreement: means over reactions, between atoms."""
    found = {}
    for seen in recordings:
        table = regard.heads.alignment(seen, queries=reactions.product_atoms, keys=reactions.reactant_atoms)
        for row in table:
            found.setdefault((row["layer"], row["head"]), []).append((row["score"], row["agreement"]))
    means = {place: np.mean(values, 0) for place, values in found.items()}
    best = max(score for score, _ in means.values())
    aligning = [place for place, (score, _) in means.items() if score >= best / 2]
    return sorted(aligning, key=lambda place: -means[place][1])


def test_the_head_is_found_blind(recorded):
    """The model has one layer that runs twelve times; its head 5 does the mapping in the later runs."""
    order = scored(seen for _, _, seen in recorded)
    print("the best heads of the published reactions:", *order)
    assert {head for _, head in order} == {reactions.HEAD}
    assert order.index((reactions.LAYER, reactions.HEAD)) < 5


def test_the_head_is_found_blind_in_other_reactions():
    albert = reactions.model()
    order = scored(reactions.record(albert, reactions.tokens_of(one)[1]) for one in reactions.OTHERS)
    print("the best heads of eight other reactions:", *order)
    assert {head for _, head in order} == {reactions.HEAD}
    assert (reactions.LAYER, reactions.HEAD) in order[:3]


def test_the_head_found_blind_maps_known_atoms_as_well_as_the_published_one():
    """Which of the later runs comes first is not decided by reactions: they map the same atoms."""
    from rxnmapper.attention import AttentionScorer

    albert = reactions.model()
    texts = [reactions.without_numbers(one) for one in reactions.KNOWN]
    recordings = []
    for text, _ in texts:
        read, tokens = reactions.tokens_of(text)
        assert read == text
        recordings.append((tokens, reactions.record(albert, tokens)))
    order = scored(seen for _, seen in recordings)
    total = sum(len(known) for _, known in texts)
    print("the best heads of eight reactions with known atoms:", *order)
    assert {head for _, head in order} == {reactions.HEAD}
    assert (reactions.LAYER, reactions.HEAD) in order[:3]
    for layer, head in dict.fromkeys([*order, (reactions.LAYER, reactions.HEAD)]):
        strongest = mapped = 0
        for (text, known), (tokens, seen) in zip(texts, recordings, strict=True):
            before = reactions.reactant_atoms(tokens)
            found = regard.align(
                seen, [(layer, head)], method="argmax", queries=reactions.product_atoms, keys=before
            )
            strongest += sum(
                before.index(pair.key) in own for pair, own in zip(found.pairs, known, strict=True)
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scorer = AttentionScorer(text, tokens, seen.layer(layer).weights(head).numpy())
                vector = scorer.generate_attention_guided_pxr_atom_mapping()["pxr_mapping_vector"]
            mapped += sum(atom in own for atom, own in zip(vector, known, strict=True))
        print(f"layer {layer} head {head}: {strongest} of {total} by the strongest weight, {mapped} mapped")
        if (layer, head) in [*order[:3], (reactions.LAYER, reactions.HEAD)]:
            assert strongest > 0.9 * total
            assert mapped == total
