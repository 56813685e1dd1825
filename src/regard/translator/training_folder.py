"""The folder of a training run: what it started with, so that it cannot resume with anything else.

run.json                  recipe, data, number of processes, digests of the vocabularies
english.json, chinese.json  the vocabularies
checkpoint.safetensors    its state
weights-*.safetensors     the last weights, to be averaged
log.jsonl, loss.png       its loss
monitor.csv               entropy, scores and gradients of its heads
model/                    its result
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from regard import atomic
from regard.checked_files import DamagedError, digest, read_json, write_json
from regard.errors import ModelFileError, TrainingError
from regard.folder_lock import locked
from regard.translator.dictionary import DictionaryEntry, digest_of_dictionary
from regard.translator.epoch_pairs import EpochPairs
from regard.translator.files import read_text
from regard.translator.lexicon import Lexicon, common_words, learn_lexicon, taught_forms, taught_words
from regard.translator.names import TAUGHT
from regard.translator.pretrained_encoder import choose_pieces, read_package
from regard.translator.recipe import Recipe
from regard.translator.sentence_pairs import CorpusSplit, Pair
from regard.translator.sentence_pairs import digest as digest_of_pairs
from regard.translator.training_split import further_pairs, split_by
from regard.translator.translate_text import CHINESE, ENGLISH, read_vocabularies, write_vocabularies
from regard.translator.vocabulary import ChineseCharacters, EnglishTokens, Vocabularies
from regard.translator.word_similarity import installed_similarity

RUN = "run.json"
FORMAT = "regard training 3"


@dataclass(frozen=True)
class TrainingRun:
    """One training run: its folder, recipe, sentences and vocabularies."""

    folder: Path
    recipe: Recipe
    corpus: CorpusSplit
    vocabularies: Vocabularies
    lexicon: Lexicon | None = None
    dictionary: Sequence[DictionaryEntry] | None = None


def recipe_of(folder: str | Path) -> Recipe | None:
    """The recipe that the run in a folder started with; None without a run.

    >>> recipe_of(getfixture("tmp_path")) is None
    True
    """
    path = Path(folder) / RUN
    return Recipe.from_fields(dict(_read(path)["recipe"])) if path.exists() else None


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Lock the folder for one run; created if missing, refused if it contains other files."""
    other = not folder.is_dir() or any(folder.glob("*.safetensors"))
    if folder.exists() and not (folder / RUN).exists() and other:
        raise TrainingError(
            "A training run needs its own folder.",
            got="{folder}, which contains other files",
            do="Choose another folder.",
            folder=folder,
        )
    with atomic.explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    busy = TrainingError(
        "Only one training run can use a folder at a time.",
        got="another one running in {folder}",
        do="Wait for it, or choose another folder with --out.",
        folder=folder,
    )
    with locked(folder, busy=busy):
        atomic.drop_leftovers(folder)
        yield


def begin_run(
    folder: Path,
    pairs: Sequence[Pair],
    recipe: Recipe,
    dictionary: Sequence[DictionaryEntry] | None = None,
    *,
    processes: int = 1,
    resume: bool = False,
) -> None:
    """Create the folder of a run, or check that it belongs to this run. Overwrites nothing."""
    path = folder / RUN
    data = digest_of_pairs([*pairs, *further_pairs(recipe)])
    wanted = {"recipe": asdict(recipe), "data": data, "processes": processes}
    wanted["dictionary"] = None if dictionary is None else digest_of_dictionary(dictionary)
    if path.exists():
        if not resume:
            raise TrainingError(
                "A new training run needs a folder without one.",
                got="{folder}",
                do="Continue with --resume, or choose another folder.",
                folder=folder,
            )
        _check_same(_read(path), wanted)
        return
    corpus = split_by(recipe, pairs)
    write_vocabularies(folder, _learn(corpus, recipe, _lexicon(dictionary, corpus)))
    files = {name: digest((folder / name).read_bytes()) for name in (ENGLISH, CHINESE)}
    # Written last: if it exists, everything else does.
    write_json(path, {"format": FORMAT, **wanted, "files": files})


def open_run(
    folder: Path, pairs: Sequence[Pair], recipe: Recipe, dictionary: Sequence[DictionaryEntry] | None = None
) -> TrainingRun:
    """The run that ``begin_run`` created or checked."""
    corpus = split_by(recipe, pairs)
    for name, written in _read(folder / RUN)["files"].items():
        if digest(read_text(folder / name).encode()) != written:
            raise ModelFileError(
                "The vocabularies of a training run must be as it wrote them.",
                got="different contents in {folder}",
                do="Start over in another folder.",
                folder=folder / name,
            )
    # Read, not learned again: the files are what the checkpoints were trained with.
    lexicon = _lexicon(dictionary, corpus)
    vocabularies = replace(
        read_vocabularies(folder),
        words=_known_words(corpus, recipe, lexicon),
        stand_ins=TAUGHT if lexicon is not None and recipe.recombined else (),
    )
    return TrainingRun(folder, recipe, corpus, vocabularies, lexicon, dictionary)


def _known_words(corpus: CorpusSplit, recipe: Recipe, lexicon: Lexicon | None) -> frozenset[str]:
    """The words that the model is taught, and those that mean the same to the encoder it starts from."""
    taught = taught_words(corpus.training, lexicon)
    if not recipe.pretrained:
        return taught
    close = installed_similarity().close_to(taught)
    return taught | {word for word in close if word.isalpha() and len(word) > 2}  # neither pieces nor numbers


def _lexicon(dictionary: Sequence[DictionaryEntry] | None, corpus: CorpusSplit) -> Lexicon | None:
    return None if dictionary is None else learn_lexicon(dictionary, corpus.training)


def _learn(corpus: CorpusSplit, recipe: Recipe, lexicon: Lexicon | None = None) -> Vocabularies:
    # The first epoch stands for all: it has the sentences, and words in the shares of every epoch.
    pairs = EpochPairs(corpus, recipe, lexicon).draw(0)
    return Vocabularies(
        _learn_english(corpus, pairs, recipe, lexicon),
        ChineseCharacters.learn((pair.chinese for pair in pairs), least=recipe.chinese_least),
    )


def _learn_english(
    corpus: CorpusSplit, pairs: Sequence[Pair], recipe: Recipe, lexicon: Lexicon | None
) -> EnglishTokens:
    if not recipe.pretrained:
        return EnglishTokens.learn((pair.english for pair in pairs), recipe.english_tokens)
    vocabulary = read_package()[0]
    # Words that nothing teaches, too: the encoder knows that *neighbour* is near *neighbor*.
    words = {} if lexicon is None else {**common_words(vocabulary), **taught_forms(lexicon)}
    return choose_pieces((pair.english for pair in corpus.training), words, recipe.english_tokens, vocabulary)


def _check_same(begun: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    before, now = _flat(begun), _flat(wanted)
    names = [name for name in now if before.get(name) != now[name]]
    if names:
        raise TrainingError(
            "A training run must continue with the options it started with ({list}).",
            got="{list_2}",
            do="Leave them unchanged, or start over in another folder.",
            list=_list(before, names),
            list_2=_list(now, names),
        )


def _flat(described: Mapping[str, Any]) -> dict[str, Any]:
    others = {name: described[name] for name in ("data", "dictionary", "processes")}
    return {**described["recipe"], **others}


def _list(values: Mapping[str, Any], names: Sequence[str]) -> str:
    return ", ".join(f"{name} = {values.get(name)}" for name in names)


def _read(path: Path) -> dict[str, Any]:
    try:
        described = read_json(path)
        if described["format"] != FORMAT:
            raise ValueError(f"format {described['format']!r}")
        _flat(described)
        dict(described["files"])
    except DamagedError as error:
        raise ModelFileError(
            "{RUN} must describe a training run and have a digest ({FORMAT!r}).",
            got="{error} in {path}",
            do="Start over in another folder.",
            RUN=RUN,
            FORMAT=FORMAT,
            error=error,
            path=path,
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise ModelFileError(
            "{RUN} must describe a training run ({FORMAT!r}).",
            got="{type} ({error}) in {path}",
            do="Start over in another folder.",
            RUN=RUN,
            FORMAT=FORMAT,
            type=type(error).__name__,
            error=error,
            path=path,
        ) from error
    return described
