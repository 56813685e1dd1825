"""Load a transformers model from a folder or the hub, quietly, and say what is wrong if that fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from regard.errors import ModelFileError

LOADING_ERRORS = (OSError, ValueError, KeyError, TypeError, ImportError, RuntimeError, SafetensorError)
"""What transformers raises for a file that is missing, damaged or of another kind."""


@contextmanager
def loading_model(name: str | Path, *, must: str, do: str) -> Iterator[tuple[Any, Path | str]]:
    """transformers and the source of a model, for a block that loads it.

    Whatever goes wrong in the block is an error that says what a model ``must`` be, and what to ``do``.
    """
    source = model_source(name)
    with quiet_transformers() as transformers:
        try:
            yield transformers, source
        except ModelFileError:
            raise
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            ImportError,
            RuntimeError,
            SafetensorError,
        ) as error:
            raise ModelFileError(
                must, got="{name!r}: {reason}", do=do, name=str(name), reason=_first_line(error)
            ) from error


def model_source(name: str | Path) -> Path | str:
    """The folder of a model, or its name on the hub; raises if it can be neither."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if folder.exists() or not _is_hub_name(str(name)):
        raise ModelFileError(
            "A model must be a folder with config.json, weights and tokenizer, or a name on the hub.",
            got="{name!r}, which is neither",
            do="Pass a folder that save_pretrained wrote.",
            name=str(name),
        )
    return str(name)


def _is_hub_name(name: str) -> bool:
    """Whether this can be ``owner/model`` or ``model``; the hub is not asked for a path."""
    parts: Sequence[str] = name.split("/")
    return 1 <= len(parts) <= 2 and all(part and part[0] not in "._~" for part in parts) and "\\" not in name


def _first_line(error: Exception) -> str:
    """The first line of what an error says."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


@contextmanager
def quiet_transformers() -> Iterator[Any]:
    """transformers, without its reports on weights that a bare encoder does not need."""
    try:
        import transformers
    except ImportError as error:
        raise ModelFileError(
            "Models other than the embedded one need the package transformers.",
            got="an installation without it",
            do='Install it: pip install "regard[hf]".',
        ) from error
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield transformers
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
