import contextlib
import json

import pytest
import torch

from regard.checked_files import DamagedError, read_json, read_tensors, write_json, write_tensors


def test_what_is_written_is_read(tmp_path):
    tensors = {
        "a": torch.arange(5),
        "b": torch.ones(2, 3)[:, 1],
        "none": torch.zeros(0, 3),
        "half": torch.ones(()).half(),
    }
    write_tensors(tmp_path / "x", tensors, {"step": 3, "name": "猫"})
    found, facts = read_tensors(tmp_path / "x")
    assert facts == {"step": 3, "name": "猫"}
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
    write_json(tmp_path / "y", {"a": [1, None], "caf\udce9": "猫"})
    assert read_json(tmp_path / "y") == {"a": [1, None], "caf\udce9": "猫"}


def flipped(whole):
    for at in range(len(whole)):
        yield whole[:at]
        for bit in range(8):
            yield whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :]


def replace(path, contents):
    """Write a new file: to overwrite one waits for the disk, each time."""
    path.unlink()
    path.write_bytes(contents)


def test_every_flipped_bit_and_every_cut_of_fields(tmp_path):
    fields = {"a": 1.5, "b": "text", "c": None}
    write_json(tmp_path / "y", fields)
    tried = unharmed = 0
    for raw in flipped((tmp_path / "y").read_bytes()):
        replace(tmp_path / "y", raw)
        tried += 1
        with contextlib.suppress(DamagedError):
            assert read_json(tmp_path / "y") == fields
            unharmed += 1
    assert unharmed < tried / 20  # white space may change


def test_every_flipped_bit_and_every_cut_of_tensors(tmp_path):
    tensors = {"a": torch.arange(3), "b": torch.ones(2, 1)}
    write_tensors(tmp_path / "x", tensors, {"step": 3})
    tried = unharmed = 0
    for raw in flipped((tmp_path / "x").read_bytes()):
        replace(tmp_path / "x", raw)
        tried += 1
        with contextlib.suppress(DamagedError):
            found, facts = read_tensors(tmp_path / "x")
            unharmed += 1
            assert facts == {"step": 3}
            assert found.keys() == tensors.keys()
            assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
    assert unharmed < tried / 20


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", pytest.param("[" * 100_000, id="deep"), json.dumps({"a": 1})]
)
def test_what_is_no_such_file(tmp_path, text):
    (tmp_path / "y").write_text(text)
    for read in (read_json, read_tensors):
        with pytest.raises(DamagedError):
            read(tmp_path / "y")
    with pytest.raises(DamagedError, match="No such file"):
        read_json(tmp_path / "none")
