"""The recording: the attention calls of a model, in order, with the tokens that they are about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from regard.errors import ArgumentError, RecordingError, ShapeError
from regard.recording.call import Call
from regard.recording.tape import Tape

Tokens = list[list[str]]
"""The tokens of each sequence of the batch."""


class Recording:
    """Every attention call of a model, as Q, K and lse, without any matrix.

    >>> import torch, regard
    >>> model = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True)
    >>> with regard.watch(model) as seen:
    ...     _ = model(torch.randn(1, 5, 16))
    >>> seen
    <Recording of TransformerEncoderLayer: 1 call>
    >>> seen[0].weights(head=1).shape
    torch.Size([5, 5])

    It grows while the ``with`` block runs and can be read at any time.
    """

    def __init__(self, model: str, calls: Sequence[Call] = (), *, tape: Tape | None = None) -> None:
        self.model = model
        self._calls = tuple(calls)
        self._tape = tape
        self._tokens: Tokens | None = None
        self._source_tokens: Tokens | None = None

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls so far, in the order in which they were first made."""
        return self._calls if self._tape is None else self._tape.calls()

    @property
    def closed(self) -> bool:
        """Whether the recording has ended; it stays readable and no longer grows."""
        return self._tape is None

    def close(self) -> None:
        """End the recording."""
        self._calls, self._tape = self.calls, None

    def __repr__(self) -> str:
        count = len(self)
        return f"<Recording of {self.model}: {count} call{'' if count == 1 else 's'}>"

    def __len__(self) -> int:
        return len(self._calls) if self._tape is None else len(self._tape.tracks)

    def __iter__(self) -> Iterator[Call]:
        return iter(self.calls)

    def __getitem__(self, which: int | str) -> Call:
        calls = self.calls
        if isinstance(which, str):
            return self._only(which)
        if isinstance(which, bool) or not isinstance(which, int) or not -len(calls) <= which < len(calls):
            raise _NoCallError(
                f"A recording is asked by number (0 … {len(calls) - 1}) or by module path.",
                got=f"{which!r}",
                do="List them: [call.name for call in seen].",
            )
        return calls[which]

    def _only(self, name: str) -> Call:
        found = self.named(name)
        if len(found) > 1:
            raise RecordingError(
                f"{name} was called {len(found)} times.", do="Choose one of seen.named(...), or go by number."
            )
        return found[0]

    def named(self, name: str) -> tuple[Call, ...]:
        """All calls of one module: several where it was run more than once, or serves several layers."""
        found = tuple(call for call in self.calls if call.name == name)
        if not found:
            names = list(dict.fromkeys(call.name for call in self.calls))
            raise _NoCallError(
                f"The recording has calls of {', '.join(names[:3])}{', …' if len(names) > 3 else ''}.",
                got=f"{name!r}",
                do="List them: [call.name for call in seen].",
            )
        return found

    @property
    def nbytes(self) -> int:
        """Memory held by the calls."""
        return sum(call.nbytes for call in self.calls)

    # ---- tokens --------------------------------------------------------------------------------

    @property
    def tokens(self) -> Tokens | None:
        """The tokens of the text that was read, one list per sequence of the batch.

        For an encoder-decoder these are the decoder's; see ``source_tokens``. One list alone is
        given to every sequence of the batch.
        """
        return self._tokens

    @tokens.setter
    def tokens(self, given: Sequence[str] | Sequence[Sequence[str]] | None) -> None:
        own = "decoder" if self._two_sided() else None
        self._tokens = self._checked("tokens", given, own)

    @property
    def source_tokens(self) -> Tokens | None:
        """The tokens on the encoder's side of an encoder-decoder."""
        return self._source_tokens

    @source_tokens.setter
    def source_tokens(self, given: Sequence[str] | Sequence[Sequence[str]] | None) -> None:
        if given is not None and not self._two_sided():
            raise RecordingError(
                "Only a recording with cross-attention has a source beside its tokens.",
                got="source_tokens",
                do="Set seen.tokens.",
            )
        self._source_tokens = self._checked("source_tokens", given, "source")

    def query_tokens(self, call: Call, batch: int = 0) -> list[str] | None:
        """The tokens of the rows of a call, or None if they were not given."""
        known = self._source_tokens if call.kind == "encoder" and self._two_sided() else self._tokens
        found = _at(known, batch)
        # The last query stands at the last key, so where there are fewer queries they are the last.
        return found[-call.queries :] if found and len(found) in (call.queries, call.keys) else None

    def key_tokens(self, call: Call, batch: int = 0) -> list[str] | None:
        """The tokens of the columns of a call, or None if they were not given."""
        other = call.kind == "cross" or (call.kind == "encoder" and self._two_sided())
        found = _at(self._source_tokens if other else self._tokens, batch)
        return found if found and len(found) == call.keys else None

    def _two_sided(self) -> bool:
        return any(call.kind == "cross" for call in self.calls)

    def _lengths(self, side: str | None) -> dict[tuple[int, int], None]:
        """Batch and length of every text on one side: None is the only side there is."""
        found: dict[tuple[int, int], None] = {}
        for call in self.calls:
            if side is None or (side == "decoder" and call.kind == "decoder"):
                found[call.batch, call.keys] = None
            elif side == "decoder" and call.kind == "cross":
                found[call.batch, call.queries] = None
            elif side == "source" and call.kind in ("cross", "encoder"):
                found[call.batch, call.keys] = None
        return found

    def _checked(self, name: str, given: Any, side: str | None) -> Tokens | None:
        if given is None:
            return None
        texts = [list(given)] if all(isinstance(token, str) for token in given) else [list(t) for t in given]
        if not all(isinstance(token, str) for text in texts for token in text):
            raise ArgumentError(
                f"{name} is a list of strings, or one such list per sequence.",
                got=repr(given)[:60],
                do="Use tokenizer.convert_ids_to_tokens(...).",
            )
        known = self._lengths(side)
        for batch, length in known:
            if all(len(text) == length for text in texts) and len(texts) in (1, batch):
                return texts * batch if len(texts) == 1 else texts
        sizes = " or ".join(f"batch = {batch}, length = {length}" for batch, length in known)
        counts = sorted({len(text) for text in texts})
        raise ShapeError(
            f"{name} names every position of every sequence ({sizes}).",
            got=f"{len(texts)} {'list' if len(texts) == 1 else 'lists'} of {' and '.join(map(str, counts))}",
            do="Give one list of that length, or one per sequence, special tokens and padding included.",
        )

    # ---- files ---------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write everything into one safetensors file; an existing file is replaced when all is written.

        Missing folders are made. Where a model gave NaN or infinity, the recording is not saved: the
        error names the call and the tensor.
        """
        from regard.recording.files import save

        save(self, Path(path))


class _NoCallError(RecordingError, LookupError):
    """No such call; also the LookupError that a Python reader would expect."""


def _at(texts: Tokens | None, batch: int) -> list[str] | None:
    if texts is None:
        return None
    if not 0 <= batch < len(texts):
        raise ArgumentError(
            f"batch is one of the recorded sequences (0 … {len(texts) - 1}).",
            got=f"batch = {batch!r}",
            do="Count from 0.",
        )
    return texts[batch]
