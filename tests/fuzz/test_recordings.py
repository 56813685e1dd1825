"""Damaged and crafted recordings: refused when they are loaded, or good for everything that regard does."""

import copy
import json
from collections import Counter

import pytest
import torch
from safetensors.torch import load_file, save

import regard
from fuzz.rounds import cases
from recording.kinds import recordings
from regard.errors import RecordingFileError
from regard.heads import roles, table
from regard.recording import ScoredCall, recording_file
from regard.recording.attention_row import row_of
from regard.views.figures.downsampling import reduced
from regard.views.figures.weight_matrix import one_matrix
from regard.views.map import HeadMatrix
from regard.views.page.page_html import document
from regard.views.page.page_payload import payload_of

KINDS = recordings()

STRINGS = [
    "",
    "x",
    "q",
    "call.0.q",
    "call.0.lse",
    "mask.0",
    "causal()",
    "window(9999999999999999999, 0)",
    "\0",
]
STRINGS += [
    "nothing()",
    "~causal() & every(3)",
    "padding([1, 0])",
    "documents([0*7])",
    "cross",
    "encoder",
    "t5",
]
NUMBERS = [0, 1, -1, 2, 7, 10**18, -(10**18), 10**400, 0.0, -0.5, 1e-320, 1e300, -1e15, 2**31, 2**63]
OTHERS = [
    None,
    True,
    False,
    [],
    {},
    [[]],
    ["&"],
    ["~", "causal()"],
    ["rows", [0, 7, "causal()"]],
    [["a"] * 7] * 2,
]
OTHERS += [["table", "call.0.q"], ["rows", [0, 3, "causal()"], [3, 7, "window(1, 0)"]], {"sum": []}]
VALUES = [*STRINGS, *NUMBERS, *OTHERS]

DTYPES = [torch.float8_e4m3fn, torch.float16, torch.bfloat16, torch.float32, torch.float64]
DTYPES += [torch.int8, torch.uint8, torch.int32, torch.int64, torch.bool, torch.complex64]
EXTREMES = [
    float("nan"),
    float("inf"),
    float("-inf"),
    1e38,
    -1e38,
    1e-40,
    1e14,
    -1e14,
    0.0,
    -3.0,
    65504.0,
    1e6,
]


def parts_of(kind):
    """The description and the tensors of a good recording, and its header."""
    text = recording_file._described(KINDS[kind], store := recording_file.TensorStore())
    return json.loads(text), store.tensors


def contents(description, tensors):
    """A file with a right digest."""
    text = description if isinstance(description, str) else json.dumps(description)
    tensors = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
    header = {
        "format": recording_file.FORMAT,
        "description": text,
        "digest": recording_file._digest(text, tensors),
    }
    return save(tensors, metadata=header)


def places(tree, here=()):
    """The way to every value of a description."""
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inner:
        yield (*here, key)
        yield from places(value, (*here, key))


def at(tree, way):
    for key in way:
        tree = tree[key]
    return tree


def change_description(tree, chance):
    """Delete, replace, exchange, nest or extend one value."""
    ways = [way for way in places(tree) if way[0] != "regard"]
    way = chance.choice(ways)
    around, key = at(tree, way[:-1]), way[-1]
    match chance.randrange(6):
        case 0:
            del around[key]
        case 1 | 2:
            around[key] = copy.deepcopy(chance.choice(VALUES))
        case 3:
            around[key] = copy.deepcopy(at(tree, chance.choice(ways)))
        case 4:
            deep = around[key]
            for _ in range(chance.choice([1, 60, 400])):
                deep = chance.choice([["~", deep], [deep], {"sum": [deep]}, ["&", deep, "causal()"]])
            around[key] = deep
        case 5:
            value = copy.deepcopy(chance.choice(VALUES))
            if isinstance(around, list):
                around.insert(chance.randrange(len(around) + 1), value)
            else:
                around[chance.choice([*STRINGS, "q", "v", "own_weights", "kept.lse", "kept.output"])] = value


def change_tensor(tensors, chance):
    """Delete, retype, reshape or overwrite one tensor."""
    name = chance.choice(sorted(tensors))
    tensor = tensors[name]
    axis = chance.randrange(tensor.ndim) if tensor.ndim else None
    match chance.randrange(8):
        case 0:
            del tensors[name]
        case 1 if not tensor.is_complex():
            tensors[name] = tensor.to(chance.choice(DTYPES))
        case 2 if axis is not None:
            tensors[name] = tensor.narrow(axis, 0, chance.randrange(tensor.shape[axis] + 1))
        case 3 if axis is not None and tensor.numel() < 10_000:
            tensors[name] = torch.cat([tensor] * chance.randrange(2, 4), axis)
        case 4 if tensor.ndim:
            tensors[name] = chance.choice(
                [tensor.flatten(), tensor[None], tensor[..., None], tensor.movedim(0, -1)]
            )
        case 5:
            tensors[name] = tensors[chance.choice(sorted(tensors))]
        case _ if tensor.numel():
            changed = tensor.clone()
            value = chance.choice(EXTREMES)
            if tensor.is_floating_point() and tensor.element_size() > 1:
                where = slice(None) if chance.random() < 0.2 else chance.randrange(tensor.numel())
                changed.view(-1)[where] = value
            elif tensor.dtype != torch.bool and tensor.element_size() == 8 and not tensor.is_complex():
                changed.view(-1)[chance.randrange(tensor.numel())] = chance.choice([-2, -1, 6, 7, 8, 10**18])
            tensors[name] = changed


def use(recording):
    """Everything that people do with a recording that was loaded."""
    repr(recording)
    for call in recording.calls:
        repr(call)
        repr(call.mask)
        call.statistics()
        recording.query_tokens(call), recording.key_tokens(call)
        if call.has_weights:
            call.statistics(top=2)
            head = call.head_numbers[-1]
            weights = call.weights(head, batch=call.batch - 1)
            assert not weights.isnan().any(), "weights are NaN"
            reduced(one_matrix(call, head=head), rows=3, columns=3)
            HeadMatrix(call, head, call.batch - 1)
            if isinstance(call, ScoredCall) and call.v is not None:
                row_of(call, head, call.queries - 1)
    if recording.calls:
        table(recording).to_json()
        list(roles(recording))
        if all(call.has_weights for call in recording.calls):
            document(payload_of(recording, recording.calls, title="x"))


def outcome(file, data):
    """What becomes of a file: "refused", or "used"; anything else is an error here."""
    file.write_bytes(data)
    try:
        recording = regard.load(file)
    except RecordingFileError as error:
        assert str(file) in str(error)  # noqa: PT017
        return "refused"
    use(recording)
    return "used"


def mutated(number, chance):
    """One crafted file with a right digest."""
    description, tensors = parts_of(chance.choice(sorted(KINDS)))
    try:
        for _ in range(chance.choice([1, 1, 1, 2, 3])):
            if chance.random() < 0.5 or not tensors:
                change_description(description, chance)
            else:
                change_tensor(tensors, chance)
        return contents(description, tensors)
    except (ValueError, RuntimeError, TypeError):
        return None  # safetensors does not write it, or it is nested too deeply for Python itself


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_is_saved_loaded_and_used(kind, tmp_path):
    KINDS[kind].save(tmp_path / "x.safetensors")
    assert len(load_file(tmp_path / "x.safetensors")) == len(parts_of(kind)[1])
    use(regard.load(tmp_path / "x.safetensors"))


def test_crafted_files_with_a_right_digest(tmp_path):
    counts = Counter()
    for number, chance in cases(120):
        data = mutated(number, chance)
        if data is None:
            counts["not written"] += 1
            continue
        try:
            counts[outcome(tmp_path / "x.safetensors", data)] += 1
        except Exception as error:
            raise AssertionError(f"case {number}: {type(error).__name__}: {error}") from error
    print("crafted recordings:", dict(counts))
    assert counts["refused"] > 20
    assert counts["used"] > 5


def test_damaged_files(tmp_path):
    """Bytes changed, cut or added, with the digest as it was."""
    good = {kind: contents(*parts_of(kind)) for kind in KINDS}
    counts = Counter()
    for _, chance in cases(60):
        data = bytearray(good[chance.choice(sorted(good))])
        match chance.randrange(4):
            case 0:
                data = data[: chance.randrange(len(data))]
            case 1:
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            case 2:
                start = chance.randrange(len(data))
                data[start : start + 9] = chance.randbytes(9)
            case 3:
                data = chance.randbytes(chance.randrange(200))
        counts[outcome(tmp_path / "x.safetensors", bytes(data))] += 1
    print("damaged recordings:", dict(counts))
    assert counts["refused"] > counts["used"]
