"""Five experiments on SmolLM2-135M: what its heads do to its answers. docs/edits.md tells what came out."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

import regard
from real import smollm2
from regard import edits, masks, metrics

Place = tuple[int, int]
"""Layer and head."""

LAYERS, HEADS = 30, 9


def edit_of(places: list[Place], make: Any) -> Any:
    """One edit for heads of several layers: ``make(layers=…, heads=…)`` for each layer."""
    by_layer: dict[int, list[int]] = {}
    for layer, head in places:
        by_layer.setdefault(layer, []).append(head)
    parts = [make(layers=layer, heads=heads) for layer, heads in sorted(by_layer.items())]
    return sum(parts[1:], start=parts[0])


def others(places: list[Place], draws: int) -> list[list[Place]]:
    """As many other heads, drawn at random, several times."""
    chance = random.Random(0)
    rest = [(layer, head) for layer in range(LAYERS) for head in range(HEADS) if (layer, head) not in places]
    return [chance.sample(rest, len(places)) for _ in range(draws)]


# ---- 1. induction heads ------------------------------------------------------------------------


@dataclass(frozen=True)
class Induction:
    heads: list[Place]
    plain: float
    without: float
    others: list[float]


def induction(model: Any, tokenizer: Any) -> Induction:
    """The loss on the second copy of random tokens, without four induction heads and without four others."""
    strongest = regard.heads.induction(model).strongest("induction", 4)
    places = [(head.layer, head.head) for head in strongest]
    length = 24
    ids = regard.heads.repeated_tokens(
        len(tokenizer), length=length, batch=4, start=tokenizer.bos_token_id, avoid=range(20), seed=11
    )
    labels = ids.clone()
    labels[:, : length + 2] = -100  # the first token of the second copy cannot be foreseen
    tried = [edit_of(some, edits.remove) for some in (places, *others(places, 5))]
    found = regard.effects(model, {"input_ids": ids, "labels": labels}, tried, metrics.loss)
    after = [float(value) for value in found.column("after")]
    return Induction(places, float(found[0]["before"]), after[0], after[1:])


# ---- 2. Mary and John --------------------------------------------------------------------------

STORE = "When Mary and John went to the store, John gave a drink to"


@dataclass(frozen=True)
class Store:
    effects: Any  # an Ablation
    looks: list[tuple[Place, float, list[tuple[str, float]]]]  # head, effect, what the last token looks at


def mary_and_john(model: Any, tokenizer: Any) -> Store:
    """The effect of every head on the logit of Mary less that of John."""
    inputs = tokenizer(STORE, return_tensors="pt")
    metric = metrics.difference(" Mary", " John", tokenizer=tokenizer)
    found = regard.ablate(model, dict(inputs), metric)
    with torch.no_grad(), regard.watch(model) as seen:
        model(**inputs)
    tokens = [tokenizer.decode(one) for one in inputs.input_ids[0]]
    looks = []
    for row in found.strongest(3):
        weights = seen.layer(row["layer"]).weights(row["head"], rows=-1)[0]
        best = weights.topk(3)
        pairs = [(tokens[key], weight) for key, weight in zip(best.indices.tolist(), best.values.tolist())]
        looks.append(((row["layer"], row["head"]), row["difference"], pairs))
    return Store(found, looks)


# ---- 3. a needle in 4,000 tokens ---------------------------------------------------------------

NEEDLE = " The magic word of this text is banana."
QUESTION = "\n\nThe text above says: the magic word of this text is"


@dataclass(frozen=True)
class Needle:
    retrieval: list[tuple[Place, float]]  # the heads with most weight on the needle, and their mass
    plain: float  # probability of the answer
    blocked: float
    others: list[float]


def needle(model: Any, tokenizer: Any, *, length: int = 4000, heads: int = 6) -> Needle:
    """Mass on a needle names the retrieval heads; then they may not see it."""
    hidden = tokenizer(NEEDLE, return_tensors="pt").input_ids
    asked = tokenizer(QUESTION, return_tensors="pt").input_ids
    rest = smollm2.long_text(tokenizer, length - hidden.shape[1] - asked.shape[1])
    at = length // 3
    ids = torch.cat([rest[:, :at], hidden, rest[:, at:]], 1)
    region = masks.span(at, at + hidden.shape[1])
    answer = metrics.token_id(" banana", tokenizer)
    with torch.no_grad():
        # What comes before the question is read once; only the question is read again with each edit.
        cache = model.model(ids, use_cache=True).past_key_values

        def probability() -> float:
            logits = model(asked, past_key_values=cache, logits_to_keep=1).logits[0, -1]
            cache.crop(-asked.shape[1])
            return float(logits.softmax(-1)[answer])

        with regard.watch(model) as seen:
            plain = probability()
        found = regard.heads.mass(seen, {"needle": region}, rows=-1).sort("needle", descending=True)
        best = [((row["layer"], row["head"]), row["needle"]) for row in found[:heads]]
        places = [place for place, _ in best]
        after = []
        for some in (places, *others(places, 3)):
            with regard.edit(model, edit_of(some, lambda **where: edits.block(region, **where))):
                after.append(probability())
    return Needle(best, plain, after[0], after[1:])


# ---- 4. knock-out by layer ---------------------------------------------------------------------

FACTS = [
    ("France", "The capital of France is", " Paris"),
    ("Japan", "The capital of Japan is", " Tokyo"),
    ("Italy", "The capital of Italy is", " Rome"),
    ("Germany", "The capital of Germany is", " Berlin"),
    ("Spain", "The capital of Spain is", " Madrid"),
    ("Russia", "The capital of Russia is", " Moscow"),
    ("China", "The capital of China is", " Beijing"),
    ("Egypt", "The capital of Egypt is", " Cairo"),
    ("Greece", "The capital of Greece is", " Athens"),
    ("England", "The capital of England is", " London"),
    ("Austria", "The capital of Austria is", " Vienna"),
    ("Poland", "The capital of Poland is", " Warsaw"),
    ("Cuba", "The capital of Cuba is", " Havana"),
    ("Ireland", "The capital of Ireland is", " Dublin"),
    ("Turkey", "The capital of Turkey is", " Ank"),
    ("Portugal", "The capital of Portugal is", " Lisbon"),
    ("Canada", "The capital of Canada is", " Ottawa"),
    ("Iraq", "The capital of Iraq is", " Baghdad"),
    ("Thailand", "The capital of Thailand is", " Bangkok"),
    ("Peru", "The capital of Peru is", " Lima"),
    ("Eiffel Tower", "The Eiffel Tower is in the city of", " Paris"),
    ("Statue of Liberty", "The Statue of Liberty is in the city of", " New"),
    ("Brazil", "The people of Brazil speak the language", " Portuguese"),
    ("Mexico", "The people of Mexico speak the language", " Spanish"),
    ("Germany", "The people of Germany speak the language", " German"),
    ("France", "The people of France speak the language", " French"),
    ("Japan", "The people of Japan speak the language", " Japanese"),
    ("Russia", "The people of Russia speak the language", " Russian"),
    ("Italy", "The people of Italy speak the language", " Italian"),
    ("Jupiter", "The planet Jupiter is the", " largest"),
    ("Everest", "Mount Everest is the", " highest"),
    ("Shakespeare", "The play Hamlet was written by William", " Shakespeare"),
    ("Darwin", "The theory of evolution was proposed by Charles", " Darwin"),
    ("Einstein", "The theory of relativity was proposed by Albert", " Einstein"),
    ("Apple", "The company Apple was founded by Steve", " Jobs"),
    ("Microsoft", "The company Microsoft was founded by Bill", " Gates"),
    ("Monday", "The day after Monday is", " Tuesday"),
]
KNOWN = 20
WIDTH, STRIDE = 6, 3


@dataclass(frozen=True)
class KnockOut:
    facts: list[str]
    windows: list[tuple[int, int]]
    kept: list[float]  # of each window: the probability of the answer, as a share of the plain one
    plain: float


def knock_out(model: Any, tokenizer: Any) -> KnockOut:
    """The last token may not see the subject in some layers: how much of the answer's probability stays."""
    windows = [(low, low + WIDTH) for low in range(0, LAYERS - WIDTH + 1, STRIDE)]
    facts, shares, plain = [], [], []
    for subject, prompt, answer in FACTS:
        token = tokenizer(answer, add_special_tokens=False).input_ids[0]
        inputs = dict(tokenizer(prompt, return_tensors="pt"))
        span = subject_span(tokenizer, prompt, subject)
        if span is None or len(facts) == KNOWN:
            continue
        with torch.no_grad():
            if int(model(**inputs).logits[0, -1].argmax()) != token:
                continue  # not known
        last = inputs["input_ids"].shape[1] - 1
        tried = [edits.block(masks.span(*span), layers=range(*window), rows=last) for window in windows]
        found = regard.effects(model, inputs, tried, metrics.probability(token))
        facts.append(prompt + answer)
        shares.append([row["after"] / row["before"] for row in found])
        plain.append(found[0]["before"])
    kept = torch.tensor(shares).mean(0).tolist()
    return KnockOut(facts, windows, kept, float(torch.tensor(plain).mean()))


def subject_span(tokenizer: Any, prompt: str, subject: str) -> tuple[int, int] | None:
    """The tokens of the subject in the prompt; None if it is not there."""
    start = prompt.find(subject)
    if start < 0:
        return None
    before, upto = (len(tokenizer(prompt[:end]).input_ids) for end in (start, start + len(subject)))
    return (max(0, before - 1) if prompt[:start].endswith(" ") else before, upto)


# ---- 5. eviction -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cut:
    found: Any  # an Eviction
    plain: float
    losses: dict[tuple[str, float], float]


def eviction(model: Any, tokenizer: Any, *, length: int = 4096, later: int = 256) -> Cut:
    """Kept mass for every policy, and the loss of the model with such a cache."""
    ids = smollm2.long_text(tokenizer, length)
    start = length - later
    with torch.inference_mode():
        with regard.watch(model.model) as seen:
            cache = model.model(ids, use_cache=True).past_key_values
        found = regard.heads.eviction(seen, start=start)
        cache.crop(-later)

        def loss() -> float:
            hidden = model.model(ids[:, start:], past_key_values=cache).last_hidden_state[0]
            cache.crop(-later)
            return float(F.cross_entropy(model.lm_head(hidden[:-1]), ids[0, start + 1 :]))

        plain = loss()
        losses = {}
        for policy in found.policies:
            for budget in found.budgets:
                with regard.edit(model.model, found.edit(policy, budget)):
                    losses[policy, budget] = loss()
    return Cut(found, plain, losses)


# ---- 6. importance and ablation ------------------------------------------------------------------

NEWS = (
    "The old lighthouse keeper climbed the stairs every evening to light the lamp. One night the storm was "
    "so strong that the ships could not see the light, and the keeper rang the bell until "
    "morning. The sailors"
)


@dataclass(frozen=True)
class ImportanceAndAblation:
    heads: list[Place]
    importance: list[float]  # |Σ dO · O|
    effects: list[float]  # the change of the metric without the head
    correlation: float  # of the ranks of both sizes


def importance_and_ablation(model: Any, tokenizer: Any) -> ImportanceAndAblation:
    """Importance of every head for the loss of a text, from one run, and the loss without it, from 270."""
    inputs = dict(tokenizer(NEWS, return_tensors="pt"))

    def loss() -> torch.Tensor:
        logits = model(**inputs).logits[0, :-1]
        return F.cross_entropy(logits, inputs["input_ids"][0, 1:])

    return compared(model, inputs, loss, metrics.loss)


def compared(model: Any, inputs: Any, score: Any, metric: Any) -> ImportanceAndAblation:
    """Both measures of every head, for a score and the metric that is the same number."""
    with regard.watch(model, gradients=True) as seen:
        score().backward()
    found = {(row["layer"], row["head"]): row["importance"] for row in regard.heads.importance(seen)}
    swept = regard.ablate(model, inputs, metric)
    after = {(row["layer"], row["head"]): row["difference"] for row in swept.table}
    places = sorted(found)
    sizes, effects = ([float(of[place]) for place in places] for of in (found, after))
    return ImportanceAndAblation(places, sizes, effects, rank_correlation(sizes, list(map(abs, effects))))


def rank_correlation(one: list[float], other: list[float]) -> float:
    """Spearman's: the correlation of ranks."""
    ranks = torch.stack([torch.tensor(values).argsort().argsort() for values in (one, other)])
    return float(torch.corrcoef(ranks.double())[0, 1])
