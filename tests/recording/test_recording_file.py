"""Recordings as files: whole and unchanged, or refused."""

import json
import shutil
import signal
import struct
import subprocess
import sys
from dataclasses import fields

import pytest
import torch
import transformers as hf
from safetensors import safe_open
from safetensors.torch import save_file

import regard
from recording.families import FAMILIES, LENGTH, SMALL, all_weights, inputs_of, padded
from recording.kinds import recordings
from regard.errors import FileError, RecordingError, RecordingFileError
from regard.interception.function_mask import FunctionMask
from regard.recording import ScoredCall, recording_file


def recorded(name, side="left", generate=False, **options):
    family = FAMILIES[name]
    model, inputs = family.build(), inputs_of(family, side)
    with torch.no_grad(), regard.watch(model, **options) as seen:
        if generate:
            inputs = {key: x for key, x in inputs.items() if not key.startswith("decoder")}
            model.generate(**inputs, max_new_tokens=5, do_sample=False)
        else:
            model(**inputs)
    return seen


@pytest.fixture(scope="module")
def seen():
    return recorded("llama")


@pytest.fixture(scope="module")
def saved_once(seen, tmp_path_factory):
    file = tmp_path_factory.mktemp("saved") / "seen.safetensors"
    seen.save(file)
    return file


@pytest.fixture
def saved(saved_once, tmp_path):
    return shutil.copy(saved_once, tmp_path / "seen.safetensors")


def same(mine, other):
    assert repr(mine) == repr(other)
    assert len(mine) == len(other)
    assert (mine.tokens, mine.source_tokens) == (other.tokens, other.source_tokens)
    for a, b in zip(mine, other):
        assert repr(a) == repr(b)
        assert type(a) is type(b)
        assert (a.run, a.head_numbers) == (b.run, b.head_numbers)
        if isinstance(a, ScoredCall):
            assert (a.scale, a.softcap) == (b.scale, b.softcap)
        if a.has_weights:
            assert torch.equal(all_weights(a), all_weights(b))
        found, wanted = a.statistics(), b.statistics()
        for field in fields(found):
            x, y = getattr(found, field.name), getattr(wanted, field.name)
            assert x is y is None or torch.equal(x, y), field.name


@pytest.mark.parametrize("generate", [False, True])
@pytest.mark.parametrize("name", ["bert", "llama", "mistral", "gemma2", "gpt_oss", "t5", "whisper", "vit"])
def test_round_trip(name, generate, tmp_path):
    if generate and FAMILIES[name].shape in ("encoder", "image"):
        return
    seen = recorded(name, generate=generate)
    seen.save(tmp_path / "x.safetensors")
    again = regard.load(str(tmp_path / "x.safetensors"))
    same(seen, again)
    for mine, other in zip(seen, again):
        assert mine.mask == other.mask
    assert [path.name for path in tmp_path.iterdir()] == ["x.safetensors"]


@pytest.mark.parametrize(
    "options",
    [
        {"statistics": True, "top": 3},
        {"dtype": torch.bfloat16, "values": True},
        {"layers": [1], "heads": [2]},
    ],
    ids=str,
)
def test_round_trip_of_every_option(options, tmp_path):
    seen = recorded("t5", generate=True, **options)
    seen.save(tmp_path / "x.safetensors")
    same(seen, regard.load(tmp_path / "x.safetensors"))


def test_tables_and_rows_of_several_masks(tmp_path):
    """A model off the registry with its own mask tensor at every step, and one with dense weights."""
    ids, keep = padded(2, LENGTH, "left")
    for model in (
        hf.FalconForCausalLM(hf.FalconConfig(**SMALL)),
        hf.BloomForCausalLM(
            hf.BloomConfig(
                vocab_size=61, hidden_size=24, n_layer=2, n_head=4, pad_token_id=0, eos_token_id=None
            )
        ),
    ):
        with torch.no_grad(), regard.watch(model.eval()) as seen:
            model.generate(ids, attention_mask=keep, max_new_tokens=4, do_sample=False)
        seen.save(tmp_path / "x.safetensors")
        same(seen, regard.load(tmp_path / "x.safetensors"))


def test_a_mask_function_goes_in_as_what_it_says(tmp_path):
    q, k = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 7, 4)
    mask = FunctionMask(lambda b, h, q, k: (q + k + b) % 3 > 0, 2, 0, 0, False) & regard.masks.window(4, 1)
    lse = regard.kernels.attention_with_lse(q, k, k, mask=mask, scale=1.0)[1]
    seen = regard.recording.Recording("by hand", [ScoredCall("x", "cross", 0, q, k, lse, mask=mask)])
    seen.save(tmp_path / "x.safetensors")
    again = regard.load(tmp_path / "x.safetensors")
    assert torch.equal(all_weights(seen[0]), all_weights(again[0]))
    assert all_weights(again[0]).sum(-1).allclose(torch.ones(2, 3, 5))


def test_tokens_go_along(tmp_path):
    seen = recorded("bart")
    seen.tokens = [f"t{i}" for i in range(7)]
    seen.source_tokens = [[f"s{i}" for i in range(11)], [f"猫{i}" for i in range(11)]]
    seen.save(tmp_path / "x.safetensors")
    again = regard.load(tmp_path / "x.safetensors")
    same(seen, again)
    assert again.source_tokens[1][0] == "猫0"


# ---- refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [0, 1, 7, 8, 100, 0.5, -1])
def test_truncated(saved, keep):
    whole = saved.read_bytes()
    saved.write_bytes(whole[: int(len(whole) * keep) if isinstance(keep, float) else keep])
    with pytest.raises(RecordingFileError, match=r"A recording must be a complete safetensors file. Got"):
        regard.load(saved)


def test_foreign(tmp_path):
    for name, contents in (
        ("text", b"hello"),
        ("pickle", b"\x80\x04cos\nsystem\n."),
        ("zip", b"PK\x03\x04" * 9),
    ):
        (tmp_path / name).write_bytes(contents)
        with pytest.raises(RecordingFileError, match=r"complete safetensors file"):
            regard.load(tmp_path / name)
    save_file({"x": torch.zeros(3)}, tmp_path / "model.safetensors")
    with pytest.raises(RecordingFileError, match=r"must name its format .'regard recording 1'.. Got None in"):
        regard.load(tmp_path / "model.safetensors")
    with pytest.raises(RecordingFileError, match=r"needs the path of a file. Got .*nothing"):
        regard.load(tmp_path / "nothing")
    with pytest.raises(RecordingFileError, match=r"needs the path of a file"):
        regard.load(tmp_path)


def test_one_changed_bit_anywhere(saved):
    whole = saved.read_bytes()
    header = struct.unpack("<Q", whole[:8])[0]
    for position in [8 + header // 2, 8 + header + 5, len(whole) - 1]:
        changed = bytearray(whole)
        changed[position] ^= 1
        saved.write_bytes(changed)
        with pytest.raises(RecordingFileError):
            regard.load(saved)


def tampered(saved, change):
    """The file with another description, and a digest that fits it."""
    with safe_open(saved, framework="pt") as file:
        header = file.metadata()
        tensors = {name: file.get_tensor(name) for name in list(file.keys())}
    described = json.loads(header["description"])
    change(described, tensors)
    text = json.dumps(described)
    save_file(
        tensors, saved, {**header, "description": text, "digest": recording_file._digest(text, tensors)}
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda d, t: d["calls"][0].update(mask="__import__('os').system('echo')"),
        lambda d, t: d["calls"][0].update(mask="padding([True])"),
        lambda d, t: d["calls"][0].update(mask=["^", "causal()"]),
        lambda d, t: d["calls"][0].update(mask=["table", "nothing"]),
        lambda d, t: d["calls"][0].update(mask=17),
        lambda d, t: d["calls"][0].update(kind="eval"),
        lambda d, t: d["calls"][0].update(scale="x"),
        lambda d, t: d["calls"][0].update(heads=[0]),
        lambda d, t: d["calls"][0].update(layer=None),
        lambda d, t: d["calls"][0].update(bias={"kind": "os.system", "table": "call.0.q"}),
        lambda d, t: d["calls"][0]["tensors"].update(q="call.0.missing"),
        lambda d, t: d["calls"][0]["tensors"].update(q="call.0.lse"),
        lambda d, t: d["calls"][0]["tensors"].update(__class__="call.0.lse"),
        lambda d, t: d["calls"][0]["tensors"].pop("lse"),
        lambda d, t: d["calls"][0].pop("mask"),
        lambda d, t: d.update(calls=3),
        lambda d, t: d.update(tokens=["too", "few"]),
        lambda d, t: t.update({"call.0.k": t["call.0.k"][:, :, :-1].contiguous()}),
        lambda d, t: t.update({"call.0.k": t["call.0.k"][:1].contiguous()}),
        lambda d, t: t.update({"call.0.lse": t["call.0.lse"][..., :-1].contiguous()}),
    ],
)
def test_a_description_that_cannot_be(saved, change):
    tampered(saved, change)
    with pytest.raises(RecordingFileError, match=r" in .*seen.safetensors. Record it again"):
        regard.load(saved)


def tampered_kind(kind, tmp_path, change):
    file = tmp_path / "seen.safetensors"
    recordings()[kind].save(file)
    tampered(file, change)
    return file


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf, 1e30])
@pytest.mark.parametrize("name", ["q", "k", "v", "lse"])
def test_numbers_that_no_model_gives(name, value, tmp_path):
    def change(described, tensors):
        tensors[f"call.1.{name}"].view(-1)[5] = value

    file = tampered_kind("layers", tmp_path, change)
    says = r"seen\[1\] \('layers.0.attention'\)"
    says = rf"The numbers of {name} in {says}" if (name, value) != ("lse", -torch.inf) else rf"row of {says}"
    with pytest.raises(RecordingFileError, match=says):
        regard.load(file)


def test_a_query_that_sees_nothing_has_lse_minus_infinity(tmp_path):
    seen = recordings()["sees nothing"]
    assert (seen[0].lse == -torch.inf).any()
    seen.save(tmp_path / "x.safetensors")
    same(seen, regard.load(tmp_path / "x.safetensors"))


@pytest.mark.parametrize("name", ["q", "k", "lse"])
def test_a_recording_with_nan_is_not_saved(name, tmp_path):
    seen = recordings()["layers"]
    seen.save(tmp_path / "x.safetensors")
    before = (tmp_path / "x.safetensors").read_bytes()
    getattr(seen[1], name).view(-1)[0] = torch.nan
    with pytest.raises(RecordingError, match=rf"numbers of {name} in seen\[1\] .* Got NaN. Find out where"):
        seen.save(tmp_path / "x.safetensors")
    assert (tmp_path / "x.safetensors").read_bytes() == before


def test_a_token_that_is_no_text_is_not_saved(tmp_path):
    seen = recordings()["layers"]
    seen.tokens = ["\ud800"] * 7
    with pytest.raises(RecordingError, match="names and tokens must be Unicode text"):
        seen.save(tmp_path / "x.safetensors")


def replaced_tensor(name, change):
    return lambda described, tensors: tensors.update({name: change(tensors[name]).contiguous()})


@pytest.mark.parametrize(
    ("kind", "change", "says"),
    [
        ("layers", lambda d, t: d["calls"][0].update(scale=10**400), "out of range"),
        ("layers", lambda d, t: d["calls"][0].update(scale=1e300), "<= 10"),
        ("layers", lambda d, t: d["calls"][0].update(scale=1e14), r"scores of seen\[0\] .* 1e[+]15"),
        ("layers", lambda d, t: d["calls"][0].update(heads=[0, 1, 1, 2]), "one number each, all different"),
        ("layers", lambda d, t: d["calls"][0]["tensors"].pop("lse"), "include k, lse, q. Got no lse"),
        ("layers", lambda d, t: d["calls"][0]["tensors"].update(own_weights="call.0.q"), "Got own_weights"),
        ("layers", lambda d, t: d["calls"][0].update(mask=["~"]), "combined with & \\| ~"),
        ("layers", lambda d, t: d["calls"][0].update(mask=["table", "call.0.q"]), "must hold bools"),
        ("layers", lambda d, t: d["calls"][0].update(mask=f"padding({[[1] * 7] * 3})"), "batch and heads"),
        ("layers", lambda d, t: d.update(tokens=[["a"] * 6] * 2), "token for every position"),
        ("layers", replaced_tensor("call.0.k", lambda k: k[:, :, :0]), "with no empty axis"),
        ("layers", replaced_tensor("call.0.v", lambda v: v.to(torch.float8_e4m3fn)), "Got F8_E4M3"),
        ("layers", replaced_tensor("call.0.v", lambda v: v.half()), "must have the same dtype"),
        ("layers", replaced_tensor("call.0.v", lambda v: v[..., :1, :]), r"v in seen\[0\] .* key = 7"),
        ("layers", replaced_tensor("call.0.k", lambda k: k[:, [0, 1, 1]]), r"shape of v in seen\[0\]"),
        ("one group per head", replaced_tensor("call.0.k", lambda k: k[:, :3]), "share its key heads evenly"),
        ("layers", lambda d, t: t["call.0.lse"].add_(1), r"row of seen\[0\] .* sum to 1"),
        ("statistics", lambda d, t: d["calls"][0]["tensors"].pop("kept.entropy"), "Got no kept.entropy"),
        ("statistics", lambda d, t: t["call.0.kept.peak_key"].fill_(7), "whole, from -1 to 6"),
        ("statistics with top", lambda d, t: d["calls"][0]["tensors"].pop("kept.top_keys"), "their weights"),
        ("alibi", replaced_tensor("call.0.bias", lambda table: table[:3]), "one entry per query head"),
        ("alibi", replaced_tensor("call.0.bias", lambda table: table * torch.nan), "bias in .* Got NaN"),
        ("t5", lambda d, t: d["calls"][0]["bias"].update(max_distance=10**40), "max_distance|out of range"),
        ("t5", lambda d, t: d["calls"][0]["bias"].update(kind="os.system"), "Invalid value"),
        ("sum of biases", lambda d, t: d["calls"][0]["bias"].update(sum=[]), "length >= 1"),
        ("stitched", lambda d, t: d["calls"][0]["mask"].pop(1), "cover exactly|without a gap"),
        ("stitched", lambda d, t: d["calls"][0]["mask"][2].__setitem__(0, 4), "without a gap"),
        ("own weights", replaced_tensor("call.0.own_weights", lambda w: w[0]), "shape of own_weights"),
    ],
    ids=lambda value: None if callable(value) else str(value),
)  # fmt: skip
def test_crafted_files_name_what_is_wrong(kind, change, says, tmp_path):
    file = tampered_kind(kind, tmp_path, change)
    with pytest.raises(RecordingFileError, match=says):
        regard.load(file)


def test_a_file_of_an_earlier_version(tmp_path):
    """The description as version 0.1.0 wrote it, letter for letter."""
    text = """{"regard": "0.1.0", "model": "BertModel", "tokens": [["a", "b"]], "source_tokens": null,
    "calls": [{"name": "layer.0", "kind": "encoder", "layer": 0, "run": 0, "scale": 1, "softcap":
    null, "heads": [0, 3], "tensors": {"q": "call.0.q", "k": "call.0.k", "lse": "call.0.lse"},
    "mask": ["&", "window(1, 1)", ["~", ["table", "mask.0"]]], "bias": {"sum": [{"kind": "t5",
    "bidirectional": true, "max_distance": 8, "table": "call.0.0.bias"}, {"kind": "tensor", "table":
    "call.0.1.bias"}]}}, {"name": "layer.1", "kind": "encoder", "layer": 1, "run": 0, "scale": 0.5,
    "softcap": 50.0, "heads": null, "tensors": {"own_weights": "call.1.own_weights"}, "mask":
    "everything()", "bias": null}]}"""
    tensors = {
        "call.0.q": torch.zeros(1, 2, 2, 4),
        "call.0.k": torch.zeros(1, 1, 2, 4),
        "call.0.lse": torch.full((1, 2, 2), 2.0).log(),
        "mask.0": torch.zeros(2, 2, dtype=torch.bool),
        "call.0.0.bias": torch.zeros(8, 2),
        "call.0.1.bias": torch.zeros(1, 1, 1, 1),
        "call.1.own_weights": torch.full((1, 3, 2, 2), 0.5),
    }
    header = {
        "format": "regard recording 1",
        "description": text,
        "digest": recording_file._digest(text, tensors),
    }
    save_file(tensors, tmp_path / "old.safetensors", header)
    seen = regard.load(tmp_path / "old.safetensors")
    assert seen.tokens == [["a", "b"]]
    assert seen[0].head_numbers == (0, 3)
    assert torch.equal(seen[0].weights(head=3), torch.full((2, 2), 0.5))
    assert torch.equal(seen[1].weights(head=2), torch.full((2, 2), 0.5))
    assert len(regard.heads.table(seen)) == 5


def test_factors_inside_capped_scores(tmp_path):
    """As earlier versions wrote them; now they are those of a scaled bias."""

    def older(described, tensors):
        parts = described["calls"][0]["bias"]["sum"]
        capped = parts[1]["scaled"]
        for name, place in (("capped", "q"), ("k", "k")):
            tensors[f"call.0.1.capped.{place}"] = tensors.pop(capped[name])
        tensors["call.0.1.capped.factors"] = tensors.pop(parts[1]["factors"])
        parts[1] = {
            "capped": "call.0.1.capped.q",
            "k": "call.0.1.capped.k",
            "factors": "call.0.1.capped.factors",
            "scale": capped["scale"],
            "softcap": capped["softcap"],
        }

    seen = recordings()["capped scores"]
    same(seen, regard.load(tampered_kind("capped scores", tmp_path, older)))
    wrong = tampered_kind("capped scores", tmp_path, lambda *file: (older(*file), spoil(*file)))
    with pytest.raises(RecordingFileError, match="factors of a bias must be finite"):
        regard.load(wrong)


def spoil(described, tensors):
    tensors["call.0.1.capped.factors"] *= torch.nan


def test_a_file_may_be_replaced_while_it_is_in_use(saved):
    seen = regard.load(saved)
    before = all_weights(seen[0])
    saved.write_bytes(b"")
    assert torch.equal(all_weights(seen[0]), before)


def test_deep_masks_do_not_exhaust_the_stack(saved):
    def change(described, tensors):
        mask = "causal()"
        for _ in range(400):
            mask = ["~", mask]
        described["calls"][0]["mask"] = mask

    tampered(saved, change)
    with pytest.raises(RecordingFileError, match=r"nested at most 50 levels"):
        regard.load(saved)


# ---- writing -------------------------------------------------------------------------------------


def test_a_running_watch_is_not_saved(tmp_path):
    model = FAMILIES["llama"].build()
    with torch.no_grad(), regard.watch(model) as seen:
        model(input_ids=torch.ones(1, 3, dtype=torch.long))
        with pytest.raises(RecordingError, match=r"closed before it is saved. Got a running watch"):
            seen.save(tmp_path / "x.safetensors")


def test_an_error_leaves_the_old_file_and_no_other(saved, monkeypatch):
    old = saved.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("no space left")

    monkeypatch.setattr(recording_file, "save_file", fail)
    with pytest.raises(FileError, match=r"must be writable. Got no space"):
        recorded("bert").save(saved)
    assert saved.read_bytes() == old
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


KILLED = """
import os, signal, sys
from pathlib import Path
import regard
from regard.recording import recording_file
write = recording_file.save_file
def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)
def half(tensors, name, metadata):
    write(tensors, name, metadata=metadata)
    os.truncate(name, 300)
    die()
def save(path):
    if path.stem == "writing":
        recording_file.save_file = half
    elif path.stem == "syncing":
        os.fsync = die
    else:
        Path.replace = die
    seen.save(path)
seen = regard.load(sys.argv[1])
for path in map(Path, sys.argv[2:]):  # everything is imported once: each that is killed is a fork
    child = os.fork()
    if not child:
        save(path)
        os._exit(0)
    print(os.WTERMSIG(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_killed_while_saving(saved, seen, tmp_path):
    files = [shutil.copy(saved, saved.with_stem(moment)) for moment in ("writing", "syncing", "renaming")]
    other = tmp_path / "other.safetensors"
    recordings()["layers"].save(other)
    run = subprocess.run([sys.executable, "-c", KILLED, other, *files], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == [str(int(signal.SIGKILL))] * 3, run.stderr
    for file in files:
        same(seen, regard.load(file))


def test_a_saved_file_is_readable_by_others(saved_once):
    plain = saved_once.parent / "plain"
    plain.touch()
    assert saved_once.stat().st_mode == plain.stat().st_mode
