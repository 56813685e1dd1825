"""Run the experiments of docs/edits.md and docs/why.md, print what comes out, and draw the pictures.

python docs/make_experiments.py [mary_and_john | knock_out | eviction …]

Needs what ``make test-real`` installs. All of them take a few minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
EXPERIMENTS = ("induction", "mary_and_john", "needle", "knock_out", "eviction", "importance_and_ablation")
sys.path.insert(0, str(DOCS.parent / "tests"))


def knock_out_curve(found: Any) -> Any:
    """The share of the answer's probability that stays, over the layers in which the subject is hidden."""
    from matplotlib.figure import Figure

    from regard.views.figures.style import ACCENT, FAINT, QUIET, house_style

    with house_style():
        figure = Figure(figsize=(5.2, 2.6), layout="constrained")
        axes = figure.add_subplot()
        middles = [(low + high - 1) / 2 for low, high in found.windows]
        axes.axhline(1.0, color=FAINT, linewidth=0.8)
        axes.plot(middles, found.kept, color=ACCENT, marker="o", markersize=4)
        names = [f"{low}–{high - 1}" for low, high in found.windows]
        axes.set_xticks(middles, names, fontsize=7.5)
        axes.set_ylim(0, 1.2)
        axes.set_xlabel("layers in which the last token does not see the subject", color=QUIET)
        axes.set_title("Probability of the answer, as a share of the plain one")
        return figure


def importance_scatter(found: dict[str, Any]) -> Any:
    """The importance of every head against what ablation measures, a panel for each model."""
    import numpy as np
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullLocator

    from regard.views.figures.style import ACCENT, QUIET, house_style

    with house_style():
        figure = Figure(figsize=(7.2, 3.2), layout="constrained")
        for axes, (name, one) in zip(figure.subplots(1, 2), found.items(), strict=True):
            sizes = np.abs(one.effects)
            axes.scatter(one.importance, sizes, s=9, color=ACCENT, alpha=0.6, linewidths=0)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlim(np.quantile(one.importance, 0.02) / 2, max(one.importance) * 2)
            axes.set_ylim(max(np.quantile(sizes, 0.02), 1e-6) / 2, sizes.max() * 2)
            axes.set_xlabel("importance, from one run", color=QUIET)
            axes.set_ylabel("change without the head", color=QUIET)
            axes.set_title(f"{name}, {len(sizes)} heads: {one.correlation:.2f}", fontsize=9)
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter(lambda value, at: f"{value:g}")
                axis.set_minor_locator(NullLocator())
        return figure


def minilm() -> Any:
    """Importance and ablation of MiniLM, for the likeness of two sentences."""
    import transformers as hf

    from heads.minilm import folder
    from heads.minilm_similarity import similarity
    from real.experiments import compared

    model = hf.AutoModel.from_pretrained(folder()).eval()
    inputs, score = similarity(model, hf.AutoTokenizer.from_pretrained(folder()))
    return compared(model, inputs, lambda: score(model(**inputs)), score)


def pictures(name: str, found: Any) -> dict[str, Any]:
    """The figures of an experiment, by file name."""
    from regard import figures

    if name == "mary_and_john":
        return {"effects-mary.png": figures.effects(found.effects, title="Mary less John, without each head")}
    if name == "knock_out":
        return {"effects-knock-out.png": knock_out_curve(found)}
    if name == "importance_and_ablation":
        both = {"SmolLM2-135M": found, "MiniLM": minilm()}
        return {"why-importance.png": importance_scatter(both)}
    if name == "eviction":
        return {"effects-eviction.png": figures.eviction(found.found)}
    return {}


def main(wanted: list[str]) -> None:
    """Run the experiments, or those named."""
    from real import experiments, smollm2
    from regard.views.figures import save

    model, tokenizer = smollm2.load()
    for name in wanted or EXPERIMENTS:
        found = getattr(experiments, name)(model, tokenizer)
        print(found)
        for file, figure in pictures(name, found).items():
            save(figure, DOCS / "pictures" / file)


if __name__ == "__main__":
    main(sys.argv[1:])
