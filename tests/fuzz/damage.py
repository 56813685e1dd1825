"""Damage to files as disks, copies and kills do it, and ends of a process at any write."""

import contextlib
import random
from pathlib import Path

from regard import atomic
from regard.errors import FileError


class Killed(BaseException):
    """Nothing catches this: as if the process ended here."""


def contents_of(folder):
    """Every file of a folder with its bytes."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write_all(folder, contents):
    for path, raw in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(raw)


def damaged(raw, chance):
    """The bytes with a flipped bit, some lost, some zeroed, or some repeated; and what was done."""
    kind = chance.choice(["flip", "flip", "flip", "cut", "zeros", "again"])
    if not raw:
        return bytes([chance.randrange(256)]), "added"
    # Headers are short beside tensors, and worth as much damage.
    at = chance.randrange(len(raw)) if chance.random() < 0.5 else chance.randrange(min(len(raw), 600))
    found = bytearray(raw)
    if kind == "flip":
        found[at] ^= 1 << chance.randrange(8)
    elif kind == "cut":
        del found[at:]
    elif kind == "zeros":
        end = min(len(found), at + chance.randrange(1, 64))
        found[at:end] = bytes(end - at)
    else:
        found[at:at] = found[at : at + chance.randrange(1, 64)]
    return bytes(found), kind


@contextlib.contextmanager
def killed_at_writes(monkeypatch, chance, *, every):
    """End the process at about one in ``every`` writes: before, in the middle of, or just after it."""
    write, append = atomic.write_bytes, atomic.append_text

    def write_bytes(path, raw):
        if chance.randrange(every):
            write(path, raw)
            return
        moment = chance.choice(["before", "amid", "after"])
        if moment == "amid":
            Path(path).with_name(f".{Path(path).name}.x.part").write_bytes(raw[: len(raw) // 2])
        elif moment == "after":
            write(path, raw)
        raise Killed

    def append_text(path, text):
        if chance.randrange(every):
            append(path, text)
            return
        append(path, text[: chance.randrange(len(text) + 1)])
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(atomic, "write_bytes", write_bytes)
        patched.setattr(atomic, "append_text", append_text)
        yield


def run_on_a_full_disk(monkeypatch, run):
    """Start again until a run ends well; one write in five finds no space. Its result, and the errors."""
    to_disk, chance = atomic._to_disk, random.Random(1)

    def full(part):
        if chance.random() < 0.2:
            raise OSError(28, "No space left on device")
        to_disk(part)

    monkeypatch.setattr(atomic, "_to_disk", full)
    ends = []
    while True:
        try:
            return run(), ends
        except FileError as error:  # noqa: PERF203 - each run must be caught by itself
            ends.append(str(error))
