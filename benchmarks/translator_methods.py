"""Each method of the translator's training on its own: the same short training with and without it.

python benchmarks/translator_methods.py cmn.txt [--steps 1000] [--tokens-per-batch 2048] [--only bpe]

All trainings have the same sentences, seed and number of steps, and a model with fewer layers than the
built-in one. Each differs from another one in one thing and is measured by the validation sentences.
Interrupt it at any time and start it again: the training that was under way continues from its last
checkpoint, and finished ones are not repeated.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from harness import RESULTS, processor, say

from regard import atomic
from regard.translator import Pair, Recipe, Translator, read_dictionary, read_pairs, score, train
from regard.translator.built_in import FOLDER
from regard.translator.evaluation import translations_of
from regard.translator.sentence_batches import encode_pairs
from regard.translator.training import held_out_loss
from regard.translator.training_checkpoint import snapshots
from regard.translator.training_folder import TrainingRun
from regard.translator.translate_text import RECIPE, build_model
from regard.translator.weight_average import average

NAME = "translator_methods"
LAYERS = {"encoder_layers": 2, "decoder_layers": 1}
"""Fewer than in the built-in model, so that a small budget shows more sentences to the model."""

CHECKPOINTS, AVERAGED = 5, 2
"""Checkpoints of a training, and how many of the last ones are averaged."""

RESAMPLES = 1000


@dataclass(frozen=True)
class Method:
    """One training: how it is called, what it changes in the recipe, and the training to compare it with."""

    name: str
    says: str
    changes: dict[str, Any]
    peer: str = "base"
    times: int = 1  # as many steps


OWN_PIECES = {"pretrained": "", "english_tokens": 4000}
METHODS = (
    Method("base", "as in the recipe of the built-in translator", {}),
    Method("no-written-pairs", "without the sentence pairs that come with regard", {"written_pairs": False}),
    Method("no-recombined", "no recombined pairs", {"recombined": 0.0}),
    Method("no-entries", "no dictionary entries", {"entries": 0.0}),
    Method(
        "sentences",
        "the user's sentence pairs alone: no written or recombined pairs, no entries",
        {"written_pairs": False, "entries": 0.0, "recombined": 0.0},
    ),
    Method(
        "bpe", "no trained encoder: 4,000 byte-pair pieces, an encoder of the decoder's width", OWN_PIECES
    ),
    Method("bpe-dropout", "the same with BPE dropout of 0.1", {**OWN_PIECES, "piece_dropout": 0.1}, "bpe"),
    Method("r-drop", "R-Drop, with the weight 2 (twice the time for a step)", {"consistency": 2.0}),
    Method("longer", "twice the steps", {}, times=2),
    Method(
        "joined",
        "short statements joined by conjunctions from the start, as 0.15 of the pairs",
        {"joined": 0.15, "joined_from": 0},
    ),
    Method("no-target-dropout", "no characters hidden from the decoder", {"target_dropout": 0.0}),
    Method("any-word", "recombined with any word of the kind, not with similar ones", {"similar": 0}),
    Method("small-vocabulary", "10,000 English pieces", {"english_tokens": 10_000}),
    Method(
        "slower-encoder", "the trained encoder at a twentieth of the learning rate", {"pretrained_rate": 0.05}
    ),
    Method("more-dropout", "dropout of 0.3", {"dropout": 0.3}),
)


def recipe_of(method: Method, steps: int, tokens: int) -> Recipe:
    """The recipe of the built-in translator with this budget, and with what the method changes."""
    steps *= method.times
    base = Recipe.read(FOLDER / RECIPE)
    budget = {
        "steps": steps,
        "constant_steps": 0,
        "tokens_per_batch": tokens,
        "warm_up": max(1, steps // 10),
        "checkpoint_every": max(1, steps // CHECKPOINTS),
        "averaged": AVERAGED,
    }
    return replace(base, **{**LAYERS, **budget, **method.changes})


def measured(run: TrainingRun) -> dict[str, Any]:
    """Greedy translations of the validation sentences by the averaged weights, and their loss."""
    model = build_model(run.recipe, run.vocabularies)
    model.load_state_dict(average(snapshots(run.folder)))
    told = [Pair(one.english, chinese) for one in run.corpus.validation for chinese in one.references]
    examples = encode_pairs(told, run.vocabularies, longest=run.recipe.length)
    loss = held_out_loss(model, examples, run.recipe.tokens_per_batch)
    texts = [one.english for one in run.corpus.validation]
    made = translations_of(Translator(model.eval(), run.vocabularies), texts)
    scores = score([made[text] for text in texts], [one.references for one in run.corpus.validation])
    return {**asdict(scores), "loss": loss, "pairs": len(examples), "translations": made}


def trained(method: Method, asked: argparse.Namespace, found: dict[str, Any]) -> None:
    """Train and measure one method, unless that is done."""
    if method.name in found["methods"]:
        return
    folder = asked.out / method.name
    recipe = recipe_of(method, asked.steps, asked.tokens_per_batch)

    def report(progress: Any) -> None:
        if progress.step % recipe.checkpoint_every == 0:
            say(method.name, f"{progress.step}/{progress.steps}", f"loss {progress.loss:.3f}")

    pairs, dictionary = read_pairs(asked.data), read_dictionary()
    run = train(pairs, folder, recipe, dictionary=dictionary, resume=True, report=report)
    found["methods"][method.name] = measured(run)
    found["references"] = {one.english: one.references for one in run.corpus.validation}
    write_json(asked.out, found)
    shutil.rmtree(folder)  # half a gigabyte


def begun(asked: argparse.Namespace) -> dict[str, Any]:
    """What was found so far, with the same budget."""
    budget = {"steps": asked.steps, "tokens": asked.tokens_per_batch, "threads": asked.threads}
    file = asked.out / f"{NAME}.json"
    found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"methods": {}, **budget}
    if any(found[name] != value for name, value in budget.items()):
        raise SystemExit(f"{asked.out} has results of another budget; choose another folder with --out.")
    return found


def write_json(folder: Path, found: dict[str, Any]) -> None:
    text = json.dumps(found, ensure_ascii=False, indent=1)
    atomic.write_text(folder / f"{NAME}.json", text)


def chance(found: dict[str, Any], method: Method) -> float:
    """How probable so large a difference in BLEU to its peer is by the choice of sentences alone."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.significance import PairedTest

    texts = list(found["references"])
    most = max(map(len, found["references"].values()))
    columns: Any = [
        [each[n] if n < len(each) else None for each in found["references"].values()] for n in range(most)
    ]
    systems: Any = [
        (name, [found["methods"][name]["translations"][text] for text in texts])
        for name in (method.peer, method.name)
    ]
    test: Any = PairedTest(
        systems, {"BLEU": BLEU(tokenize="zh")}, columns, test_type="bs", n_samples=RESAMPLES
    )
    return float(test()[1]["BLEU"][1].p_value)


def table(found: dict[str, Any]) -> str:
    """The finished trainings as Markdown."""
    steps, tokens, threads = (found[name] for name in ("steps", "tokens", "threads"))
    done, full = found["methods"], Recipe.read(FOLDER / RECIPE)
    share = full.steps * full.tokens_per_batch / (steps * tokens)
    lines = [
        "# Methods of the translator's training, one at a time",
        "",
        f"{threads} thread{'s' * (threads > 1)}, torch {torch.__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}, {processor()}. {steps:,} steps of "
        f"{tokens:,} tokens, {LAYERS['encoder_layers']} + {LAYERS['decoder_layers']} layers, one seed; "
        "otherwise the built-in recipe. BLEU and chrF are those of greedy translations of "
        f"{len(found.get('references', ()))} validation sentences, with the last {AVERAGED} checkpoints "
        "averaged; the loss is per character, of the references without unknown characters. p is the "
        "probability of so large a difference by the choice of sentences alone (sacrebleu's paired "
        f"bootstrap, {RESAMPLES:,} resamples); what another seed would change is not in it.",
        "",
        f"The built-in model was trained on {share:.0f} times as many tokens. So this shows what a method "
        "does early in training. What pays off late (R-Drop, target dropout, rare words of the dictionary) "
        "can look useless here.",
        "",
        "| training | BLEU | chrF | loss | compared with | difference in BLEU | p |",
        "|---|---|---|---|---|---|---|",
    ]
    for method in METHODS:
        if method.name not in done:
            lines.append(f"| {method.says} | not run | | | {method.peer} | | |")
            continue
        own = done[method.name]
        row = [method.says, f"{own['bleu']:.1f}", f"{own['chrf']:.1f}", f"{own['loss']:.3f}"]
        compared = method.peer in done and method.peer != method.name
        difference = f"{own['bleu'] - done[method.peer]['bleu']:+.1f}" if compared else ""
        row += [method.peer if method.peer != method.name else "", difference]
        row += [f"{chance(found, method):.3f}" if compared else ""]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="sentence pairs, as for regard train")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--tokens-per-batch", type=int, default=2048)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", action="append", choices=[one.name for one in METHODS])
    parser.add_argument("--out", type=Path, default=Path("build") / NAME, help="folder for what is under way")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    asked.out.mkdir(parents=True, exist_ok=True)
    found = begun(asked)
    for method in METHODS:
        if asked.only is None or method.name in asked.only:
            trained(method, asked, found)
            RESULTS.joinpath(f"{NAME}.md").write_text(table(found), encoding="utf-8")
    print(table(found))


if __name__ == "__main__":
    main()
