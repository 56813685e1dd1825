"""One text in four processes, against one process and against the definition."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import regard
from kernels.ring_process import CASES, MASKS, N, memory_of, options_of, whole
from kernels.test_statistics import assert_statistics, by_definition
from regard import masks
from regard.errors import ArgumentError
from regard.kernels import Statistics

COUNT = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What four processes wrote, which met in a file."""
    folder = tmp_path_factory.mktemp("ring")
    script = Path(__file__).with_name("ring_process.py")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    call = [sys.executable, str(script), str(COUNT), str(folder)]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder


def joined(folder, name, count=COUNT):
    """The shares of all processes side by side."""
    shares = [load_file(folder / f"{name}.{rank}") for rank in range(count)]
    fields = dict.fromkeys(("output", "top_weights", "top_keys"))
    for key in shares[0]:
        # (..., query), (..., query, channel) and (..., query, top); what was received is (..., key).
        axis = -2 if key in fields else -1
        fields[key] = torch.cat([share[key] for share in shares], axis)
    return Statistics(**fields)


@pytest.mark.parametrize(("mask", "option", "dtype"), CASES)
def test_four_processes_are_as_one(folder, mask, option, dtype):
    q, k, v = whole(dtype)
    options = {"mask": MASKS[mask], **options_of(option)}
    found = joined(folder, f"{mask}-{option}-{dtype}")
    alone = regard.attention_statistics(q, k, v, top=3, **options)
    for name, value in vars(alone).items():
        mine = getattr(found, name)
        assert mine.dtype == value.dtype, name
        if name in ("peak_key", "top_keys"):
            continue  # equal weights may change places; their weights are compared below
        finite = torch.isfinite(value)
        assert torch.equal(finite, torch.isfinite(mine)), name
        # The output in half precision is rounded once in either case.
        tolerance = 1e-2 if value.dtype == torch.bfloat16 else 1e-5 if dtype != "float64" else 1e-11
        error = (mine[finite].double() - value[finite].double()).abs()
        assert (error <= tolerance * value[finite].double().abs().clamp(min=1)).all(), name
    wanted = by_definition(q, k, v, **options)
    if dtype == "bfloat16":
        wanted.pop("output")
    # ALiBi takes the scores of far rows to −100, where float32 has steps of 8e-6.
    assert_statistics(found, wanted, 2e-5 if option == "alibi" else 1e-5, top=3)


def test_fewer_queries_than_keys_and_no_values(folder):
    q, k, _ = whole("float32", queries=61, keys=N)
    wanted = by_definition(q, k, k, mask=masks.causal())
    wanted.pop("output")
    found = joined(folder, "rectangle")
    assert found.output is None
    assert found.top_keys is None
    assert_statistics(found, wanted, 1e-5)


def test_a_group_of_some_processes(folder):
    q, k, v = whole("float32")
    assert_statistics(joined(folder, "pair", count=2), by_definition(q, k, v), 1e-5)


def test_a_process_holds_its_share_alone(folder):
    """The largest tensor that one of four makes is one of its own size: nothing of the whole text."""
    said = [json.loads((folder / f"said.{rank}").read_text()) for rank in range(COUNT)]
    alone = memory_of(None, 0, 1)
    assert alone == 4 * 4096 * 32 * 4  # heads × positions × channels × bytes
    assert [one["memory"] for one in said] == [alone // COUNT] * COUNT


SAID = {
    "heads": ["must pass the same heads (process 0: heads = 6). Got heads = 2 in process 1."] * 4,
    "own": [
        *["Got an error in process 2. See the error message of that process."] * 2,
        "Queries and keys must have the same number of channels (q = 4). Got k = 5",
        "Got an error in process 2.",
    ],
    "scale": ["must pass the same scale (process 0: no scale). Got scale = 0.5 in process 3."] * 4,
    "values": ["must pass the same values (process 0: values given). Got no values in process 3."] * 4,
    "dtype": ["must pass the same dtype (process 0: torch.float32). Got torch.float64 in process 1."] * 4,
    "mask": ["padding(keep) needs one value per position (queries = 133, keys = 133). Got 7 values"] * 4,
    "one mask": [
        "Got an error in process 1.",
        "padding(keep) needs one value per position",
        *["Got an error in process 1."] * 2,
    ],
    "no group": ["group must be a process group of torch.distributed. Got str."] * 4,
    "outside": [*["inside"] * 2, *[f"Got a group without rank {rank}." for rank in (2, 3)]],
}


@pytest.mark.parametrize("what", SAID)
def test_all_processes_raise_together(folder, what):
    for rank, says in enumerate(SAID[what]):
        assert says in json.loads((folder / f"said.{rank}").read_text())[what]


def test_a_group_without_connected_processes_is_refused():
    q, k, v = whole("float32")
    with pytest.raises(ArgumentError, match=r"torch\.distributed without init"):
        regard.attention_statistics(q, k, v, group=object())
