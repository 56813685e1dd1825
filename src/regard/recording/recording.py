"""The recording: the attention calls of a model, in order, with their tokens.

Recorder, while the block runs → Recording → one Call, by number, name or layer
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from regard.checks import is_integer
from regard.errors import ArgumentError, DtypeError, Phrase, RecordingError, ShapeError
from regard.interception.call_types import Kind
from regard.notebook_table import html_table
from regard.recording.call import Call, check_sequence
from regard.recording.next_tokens import NextTokens
from regard.recording.picture import Picture
from regard.recording.recorder import Recorder

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

    def __init__(self, model: str, calls: Sequence[Call] = (), *, recorder: Recorder | None = None) -> None:
        self.model = model
        self._calls = tuple(calls)
        self._recorder = recorder
        self._tokens: Tokens | None = None
        self._source_tokens: Tokens | None = None
        self._next_tokens: NextTokens | None = None
        self._picture: Picture | None = None

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls so far, in the order in which they were first made."""
        return self._calls if self._recorder is None else self._recorder.calls()

    @property
    def closed(self) -> bool:
        """Whether the recording has ended; it stays readable and no longer grows."""
        return self._recorder is None

    def close(self) -> None:
        """End the recording."""
        self._calls, self._recorder = self.calls, None

    def __repr__(self) -> str:
        count = len(self)
        return f"<Recording of {self.model}: {count} call{'' if count == 1 else 's'}>"

    def _repr_html_(self) -> str:
        columns = ("call", "name", "kind", "layer", "run", "batch", "heads", "queries", "keys", "MB")
        rows = (
            (number, call.name, call.kind, call.layer, call.run, *call.shape, call.nbytes / 1e6)
            for number, call in enumerate(self.calls)
        )
        return html_table(columns, rows, f"{self!r:.200}"[1:-1])

    def __len__(self) -> int:
        return len(self._calls) if self._recorder is None else len(self._recorder.builders)

    def __iter__(self) -> Iterator[Call]:
        return iter(self.calls)

    def __getitem__(self, which: int | str) -> Call:
        calls = self.calls
        if isinstance(which, str):
            return self._only(which)
        if not is_integer(which, -len(calls), len(calls) - 1):
            raise _NoCallError(
                "A call must be chosen by its number (0 … {last}) or its module path.",
                got="{which!r}",
                do="List them: [call.name for call in seen].",
                last=len(calls) - 1,
                which=which,
            )
        return calls[which]

    def _only(self, name: str) -> Call:
        found = self.named(name)
        if len(found) > 1:
            raise RecordingError(
                "{name} was called {count} times.",
                do="Choose one of seen.named(...), or choose by number.",
                name=name,
                count=len(found),
            )
        return found[0]

    def named(self, name: str) -> tuple[Call, ...]:
        """All calls of one module: several if it ran more than once, or serves several layers."""
        found = tuple(call for call in self.calls if call.name == name)
        if not found:
            names = list(dict.fromkeys(call.name for call in self.calls))
            raise _NoCallError(
                "The recording has calls of {names}.",
                got="{name!r}",
                do="List them: [call.name for call in seen].",
                names=", ".join(names[:3] + ["…"] * (len(names) > 3)),
                name=name,
            )
        return found

    def layer(self, number: int, *, kind: Kind | None = None, run: int | None = None) -> Call:
        """The call of one layer, as each kind (encoder, decoder, cross) numbers its layers from 0.

        ``kind`` is needed where several kinds have such a layer, ``run`` where it ran several times.
        """
        calls = [call for call in self.calls if kind in (None, call.kind) and run in (None, call.run)]
        found = [call for call in calls if call.layer == number and not isinstance(number, bool)]
        if len(found) == 1:
            return found[0]
        named = (("layer", number), ("kind", kind), ("run", run))
        asked = ", ".join(f"{name} = {value!r}" for name, value in named if value is not None)
        if not found:
            raise _NoCallError(
                "The recording has {layers}.",
                got="{asked}",
                do="Choose one of these layers.",
                layers=_listed_layers(self.calls) or Phrase("no calls"),
                asked=asked,
            )
        for name in ("kind", "run", "name"):
            values = list(dict.fromkeys(str(getattr(call, name)) for call in found))
            if len(values) > 1:
                raise RecordingError(
                    "Layer {number} was recorded more than once (by {name}: {values}).",
                    got="{asked}",
                    do="Choose one by its module path: seen[name]." if name == "name" else "Pass {name}=.",
                    number=number,
                    name=name,
                    values=", ".join(values),
                    asked=asked,
                )
        raise RecordingError(
            "Layer {number} was recorded more than once ({count} calls).",
            do="Choose by number: seen[0].",
            number=number,
            count=len(found),
        )

    @property
    def nbytes(self) -> int:
        """Memory held by the calls."""
        return sum(call.nbytes for call in self.calls)

    # ---- tokens --------------------------------------------------------------------------------

    @property
    def tokens(self) -> Tokens | None:
        """The tokens of the text that was read, one list per sequence of the batch.

        For an encoder-decoder these are the decoder's; see ``source_tokens``. A single list is used
        for every sequence of the batch. Token ids (lists, an array or a tensor) are accepted too
        and shown as numbers; ``tokenizer.convert_ids_to_tokens`` turns them into words. A model never reads
        the last token that it generates, so leave that one out.
        """
        return self._tokens

    @tokens.setter
    def tokens(self, given: Any) -> None:
        own = "decoder" if self._two_sided() else None
        self._tokens = self._checked("tokens", given, own)

    @property
    def source_tokens(self) -> Tokens | None:
        """The tokens on the encoder's side of an encoder-decoder."""
        return self._source_tokens

    @source_tokens.setter
    def source_tokens(self, given: Any) -> None:
        if given is not None and not self._two_sided():
            raise RecordingError(
                "Only a recording with cross-attention has source tokens.",
                got="source_tokens",
                do="Set seen.tokens.",
            )
        self._source_tokens = self._checked("source_tokens", given, "source")

    @property
    def next_tokens(self) -> NextTokens | None:
        """The likeliest next tokens at each position of the text, where a language model was asked for them.

        For an encoder-decoder the positions are the decoder's. It belongs to the first sequence of the batch.
        """
        return self._next_tokens

    @next_tokens.setter
    def next_tokens(self, given: NextTokens | None) -> None:
        known = {length for _, length in self._lengths("decoder" if self._two_sided() else None)}
        if given is not None and len(given) not in known:
            raise ShapeError(
                "next_tokens must have a row for every position of the text ({lengths}).",
                got="{rows} rows",
                do="Record text and next tokens together.",
                lengths=", ".join(map(str, sorted(known))),
                rows=len(given),
            )
        self._next_tokens = given

    @property
    def picture(self) -> Picture | None:
        """The picture that the model read, and where its patches are among the tokens."""
        return self._picture

    @picture.setter
    def picture(self, given: Picture | None) -> None:
        if given is not None and not isinstance(given, Picture):
            raise DtypeError(
                "picture must be a regard.Picture.",
                got="{type}",
                do="Pass regard.Picture(image, grid=(14, 14), tokens=slice(1, 197)), say.",
                type=type(given).__name__,
            )
        longest = max((call.keys for call in self.calls), default=0)
        if given is not None and max(given.tokens) >= longest:
            raise ShapeError(
                "The patches of a picture must be tokens of the recording ({length} of them).",
                got="a patch at position {last}",
                do="Compare grid and tokens with the model.",
                length=longest,
                last=max(given.tokens),
            )
        self._picture = given

    def query_tokens(self, call: Call, batch: int = 0) -> list[str] | None:
        """The tokens of the rows of a call, or None if they were not given."""
        known = self._source_tokens if call.kind == "encoder" and self._two_sided() else self._tokens
        found = _at(known, batch)
        # The last query is at the last key, so fewer queries than keys are the last ones.
        return found[-call.queries :] if found and len(found) in (call.queries, call.keys) else None

    def row_tokens(self, call: Call, batch: int = 0) -> list[str] | None:
        """The names of the rows of a call: ``query_tokens``, but of cross-attention the tokens being written.

        Row t of a decoder has read token t and writes token t + 1, which is what its cross-attention looks
        for. The token that the last row writes was never read, so it is not recorded: ``"…"``.
        """
        found = self.query_tokens(call, batch)
        return [*found[1:], "…"] if found and call.kind == "cross" else found

    def key_tokens(self, call: Call, batch: int = 0) -> list[str] | None:
        """The tokens of the columns of a call, or None if they were not given."""
        other = call.kind == "cross" or (call.kind == "encoder" and self._two_sided())
        found = _at(self._source_tokens if other else self._tokens, batch)
        return found if found and len(found) == call.keys else None

    def _two_sided(self) -> bool:
        return any(call.kind == "cross" for call in self.calls)

    def _lengths(self, side: str | None) -> dict[tuple[int, int], None]:
        """Batch and length of every text on one side; None for a model with one side."""
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
        texts = _texts(name, given)
        known = self._lengths(side)
        for batch, length in known:
            if all(len(text) == length for text in texts) and len(texts) in (1, batch):
                return texts * batch if len(texts) == 1 else texts
        sizes = "; ".join(f"batch = {batch}, length = {length}" for batch, length in known)
        counts = sorted({len(text) for text in texts})
        one_more = name == "tokens" and bool(counts) and counts[-1] - 1 in {length for _, length in known}
        raise ShapeError(
            "{name} must have a token for every position of every sequence ({sizes}).",
            got="1 list of {lengths}" if len(texts) == 1 else "{lists} lists of {lengths}",
            do="A model never reads the last token that it generates: pass tokens[:-1] or ids[:, :-1]."
            if one_more
            else "Pass one list of that length, or one per sequence, special tokens and padding included.",
            name=name,
            sizes=sizes,
            lists=len(texts),
            lengths=", ".join(map(str, counts)),
        )

    # ---- files ---------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write everything to one safetensors file; an existing file is replaced when that is complete.

        Missing folders are created. A recording with NaN or infinity is not saved: the error names the call
        and the tensor.
        """
        from regard.recording.recording_file import save

        save(self, Path(path))


def _listed_layers(calls: Sequence[Call]) -> list[Phrase]:
    """The layers of a recording, by kind and run."""
    found: dict[tuple[Kind, int], list[int]] = {}
    for call in calls:
        found.setdefault((call.kind, call.run), []).append(call.layer)
    several_runs = len({run for _, run in found}) > 1
    listed = [
        Phrase(
            "{kind} layers {layers} in run {run}" if several_runs else "{kind} layers {layers}",
            kind=kind,
            layers=_listed_numbers(layers),
            run=run,
        )
        for (kind, run), layers in found.items()
    ]
    return listed[:6] + [Phrase("…")] * (len(listed) > 6)


def _listed_numbers(numbers: Sequence[int]) -> str:
    known = sorted(set(numbers))
    if len(known) > 2 and known == list(range(known[0], known[-1] + 1)):
        return f"{known[0]} … {known[-1]}"
    return ", ".join(map(str, known))


class _NoCallError(RecordingError, LookupError):
    """No such call; also a LookupError, as Python users expect."""


def _texts(name: str, given: Any) -> Tokens:
    """Strings or ids, of one text or of several, as lists of strings."""
    if hasattr(given, "tolist"):  # a tensor or an array
        given = given.tolist()
    if isinstance(given, Sequence) and not isinstance(given, str):
        listed = [one.tolist() if hasattr(one, "tolist") else one for one in given]
        texts = [listed] if all(_is_token(one) for one in listed) else listed
        lists = all(isinstance(text, Sequence) and not isinstance(text, str) for text in texts)
        if lists and all(_is_token(token) for text in texts for token in text):
            return [[str(token) for token in text] for text in texts]
    raise ArgumentError(
        "{name} must be a list of strings or of token ids, or one such list per sequence.",
        got="{given}",
        do="Use tokenizer.convert_ids_to_tokens(...).",
        name=name,
        given=repr(given)[:60],
    )


def _is_token(given: object) -> bool:
    return isinstance(given, str | int) and not isinstance(given, bool)


def _at(texts: Tokens | None, batch: int) -> list[str] | None:
    if texts is None:
        return None
    check_sequence(batch, len(texts))
    return texts[batch]
