"""The compiled row pass: built here, compared with the definition and with torch, and done without."""

import ctypes
import functools
import importlib.util
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard
from kernels.test_attention import MASKS, OPTIONS, N
from kernels.test_statistics import assert_statistics, by_definition
from masks.strategies import expressions
from parity import tensors
from regard import biases, masks
from regard.kernels import compiled_pass as loader
from regard.kernels import statistics_compiled, tile_columns

ROOT = Path(__file__).parent.parent.parent
SPEC = importlib.util.spec_from_file_location("build_row_pass", ROOT / "build_row_pass.py")
builder = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(builder)

needs_compiler = pytest.mark.skipif(builder.compiler() is None, reason="no C compiler")


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The library, built from the source that is tested."""
    target = tmp_path_factory.mktemp("built") / "row_pass.so"
    assert builder.compile_row_pass(ROOT, target) == ""
    return target


@pytest.fixture
def loading(monkeypatch):
    """Loads a file as if it had been installed."""

    def load(file: Path) -> None:
        monkeypatch.setattr(loader, "FILE", file)
        loader._load.cache_clear()

    monkeypatch.delenv(loader.SWITCH, raising=False)
    yield load
    loader._load.cache_clear()


@pytest.fixture
def compiled(library, loading):
    loading(library)
    assert loader.reason_without() is None
    return loader.compiled_pass()


@pytest.fixture(params=["compiled", "torch"])
def path(request, monkeypatch):
    """Both ways of computing, one after the other."""
    if request.param == "torch":
        monkeypatch.setenv(loader.SWITCH, "0")
    elif builder.compiler() is None:
        pytest.skip("no C compiler")
    else:
        request.getfixturevalue("compiled")
    return request.param


# ---- the same numbers ------------------------------------------------------------------------

LENGTH = 70

EXTRAS = {
    "plain": lambda: {},
    "scale": lambda: {"scale": -0.3},
    "softcap": lambda: {"softcap": 1.3},
    "sinks": lambda: {"sinks": torch.tensor([-3.0, 0.0, 2.0, 90.0])},
    "alibi": lambda: {"bias": biases.alibi(4)},
    "forbidding bias": lambda: {
        "bias": torch.randn(4, LENGTH, LENGTH).masked_fill(torch.rand(4, LENGTH, LENGTH) > 0.6, -torch.inf)
    },
    "all": lambda: {"bias": biases.alibi(4), "softcap": 2.0, "sinks": torch.zeros(4), "scale": 0.5},
}


@needs_compiler
@given(
    mask=expressions(LENGTH),
    extra=st.sampled_from(list(EXTRAS)),
    dtype=st.sampled_from([torch.float32, torch.float16, torch.bfloat16]),
    rows=st.sampled_from([7, 64, 1000]),
    top=st.integers(0, 3),
    with_values=st.booleans(),
)
def test_random_masks_options_and_dtypes(library, mask, extra, dtype, rows, top, with_values):
    q, k, v = tensors(2, heads=4, key_heads=2, queries=LENGTH, channels=8, values=7, dtype=dtype)
    options = EXTRAS[extra]()
    wanted = by_definition(q, k, v, mask=mask, **options)
    outputs = wanted.pop("output")
    patched = pytest.MonkeyPatch()
    patched.setattr(loader, "FILE", library)
    patched.setattr(statistics_compiled.CompiledStatistics, "max_scores", rows * LENGTH * 8)
    patched.delenv(loader.SWITCH, raising=False)
    loader._load.cache_clear()
    try:
        assert loader.compiled_pass() is not None
        for switch in ("1", "0"):
            patched.setenv(loader.SWITCH, switch)
            found = regard.attention_statistics(
                q, k, v if with_values else None, mask=mask, top=top, **options
            )
            # ALiBi takes the scores of far rows to −100, where float32 has steps of 8e-6.
            assert_statistics(found, wanted, 3e-5, top=top)
            if with_values:
                tolerance = {torch.float32: 3e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}[dtype]
                assert np.abs(found.output.double().numpy() - outputs).max() < tolerance
    finally:
        patched.undo()
        loader._load.cache_clear()


@functools.lru_cache(maxsize=1)  # computed once for both paths, which follow each other
def with_definition(name, label):
    inputs = tensors(2, heads=6, key_heads=2, queries=N, channels=16, dtype=torch.float32)
    options = {"mask": MASKS[name], **OPTIONS[label]()}
    return inputs, options, by_definition(*inputs, **options)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("path", ["compiled", "torch"], indirect=True)  # the first one changes fastest
@pytest.mark.parametrize("label", OPTIONS)
@pytest.mark.parametrize(
    "name", ["full", "prefix", "gathered", "ragged padding", "an empty batch element", "by head"]
)
def test_masks_and_options_on_both_paths(name, label):
    inputs, options, wanted = with_definition(name, label)
    assert_statistics(regard.attention_statistics(*inputs, top=3, **options), wanted, 3e-5, top=3)


@pytest.mark.parametrize(
    "mask", [None, masks.causal(), masks.window(300, 0), masks.causal() & masks.prefix(600)]
)
def test_rows_longer_than_a_block_of_the_maximum(path, mask):
    q, k, v = tensors(heads=2, queries=1201, channels=8, dtype=torch.float32)
    k[:, 1100] *= 5  # a peak in the last, shorter block
    found = regard.attention_statistics(q, k, v, mask=mask, top=2)
    assert_statistics(found, by_definition(q, k, v, mask=mask), 1e-5, top=2)


@needs_compiler
def test_every_version_that_this_processor_has(compiled):
    q, k, v = tensors(2, heads=4, key_heads=2, queries=N, channels=16, dtype=torch.float32)
    best = compiled.version
    for version in range(best + 1):
        compiled.version = version
        for name in ("causal", "ragged padding", "by head and batch"):
            if name == "by head and batch":
                mask = masks.dense(np.arange(8).reshape(2, 4, 1, 1) % 5 > 0) & masks.window(20, 20)
            else:
                mask = MASKS[name]
            found = regard.attention_statistics(q, k, v, mask=mask, top=2)
            assert_statistics(found, by_definition(q, k, v, mask=mask), 1e-5, top=2)
    compiled.version = best


@needs_compiler
def test_float32_on_the_cpu_is_what_it_computes(compiled, monkeypatch):
    calls = []
    monkeypatch.setattr(type(compiled), "run", lambda self, arguments: calls.append(arguments.rows))
    for dtype, used in ((torch.float64, False), (torch.float32, True), (torch.float16, True)):
        calls.clear()
        q, k, v = tensors(queries=9, dtype=dtype)
        regard.attention_statistics(q, k, v)
        assert bool(calls) == used
    monkeypatch.setenv(loader.SWITCH, "0")
    calls.clear()
    regard.attention_statistics(*tensors(queries=9, dtype=torch.float32))
    assert not calls


def test_what_is_masked_gets_no_weight_at_all(path):
    q, k, v = tensors(heads=2, queries=130, channels=8, dtype=torch.float32)
    hidden = np.arange(130) % 3 == 1
    found = regard.attention_statistics(100 * q, k, v, mask=masks.padding(~hidden) & masks.causal(), top=130)
    assert not found.received[:, hidden].any()
    assert not np.isin(found.top_keys.numpy(), np.flatnonzero(hidden)).any()
    assert torch.equal(found.visible[0], torch.from_numpy((~hidden).cumsum()))


def test_a_row_with_nan_is_nan_and_the_others_are_not(path):
    q, k, v = tensors(heads=2, queries=130, channels=8, dtype=torch.float32)
    clean = regard.attention_statistics(q, k, v, mask=masks.causal())
    for bad in (torch.nan, torch.inf):
        q[0, 7, 3] = bad
        found = regard.attention_statistics(q, k, v, mask=masks.causal())
        for name in ("output", "lse", "entropy", "distance", "peak"):
            value = getattr(found, name)
            assert value[0, 7].isnan().all(), name
            value[0, 7] = getattr(clean, name)[0, 7]
            assert torch.equal(value, getattr(clean, name)), name


def test_equal_weights_name_the_first_key(path):
    q = k = torch.zeros(1, 700, 8)
    found = regard.attention_statistics(q, k, mask=masks.window(20, 20) | masks.every(64))
    first = found.peak_key[0]
    assert not first.any()  # key 0 is a multiple of 64, seen by all
    assert (found.peak[0] * found.visible[0] - 1).abs().max() < 1e-5


def test_heads_share_tables_and_none_is_kept_afterwards():
    mask = masks.window(20, 0) | masks.prefix(3)
    part = regard.plan(mask, 300).elements[0].parts[0]
    columns = tile_columns.columns_of(part, regard.plan(mask, 300).extent, ())
    assert columns is tile_columns.columns_of(part, regard.plan(mask, 300).extent, ())  # of the next layer
    found = [columns.of(tile) for tile in part.rows]
    assert [columns.of(tile) for tile in part.rows] == found
    assert any(one.allowed is not None for one in found)
    columns.forget_tables()
    assert all((columns.of(tile) is one) == (one.allowed is None) for tile, one in zip(part.rows, found))


# ---- building and loading --------------------------------------------------------------------


@needs_compiler
def test_subnormal_numbers_survive_loading(library, tmp_path):
    """With -ffast-math, gcc links in code that flushes them in the thread that loads and those it starts."""
    kept = []

    def check():
        kept.append(np.float32(1e-40) * np.float32(0.5) > 0)
        kept.append((torch.full((9,), 1e-40) * 0.5 > 0).all())

    def load():
        ctypes.CDLL(shutil.copy(library, tmp_path / "never loaded before.so"))
        check()
        within(check)

    def within(work):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    within(load)
    assert len(kept) == 4
    assert all(kept)


def test_what_cannot_be_loaded_is_named_and_torch_is_used(loading, tmp_path):
    loading(tmp_path / "missing.so")
    assert loader.compiled_pass() is None
    assert loader.reason_without() == "not_built"
    (tmp_path / "text.so").write_text("no library")
    loading(tmp_path / "text.so")
    assert loader.reason_without() == "not_loaded"
    q, k, v = tensors(queries=9, dtype=torch.float32)
    assert_statistics(regard.attention_statistics(q, k, v), by_definition(q, k, v), 1e-5)


@needs_compiler
def test_a_build_of_another_source_is_not_used(loading, tmp_path):
    source = tmp_path / builder.SOURCE
    source.parent.mkdir(parents=True)
    source.write_bytes((ROOT / builder.SOURCE).read_bytes() + b"/* newer */\n")
    assert builder.compile_row_pass(tmp_path, tmp_path / "row_pass.so") == ""
    loading(tmp_path / "row_pass.so")
    assert loader.compiled_pass() is None
    assert loader.reason_without() == "outdated"


def test_the_switch(monkeypatch):
    monkeypatch.setenv(loader.SWITCH, "0")
    assert loader.compiled_pass() is None
    assert loader.reason_without() == "off"
    assert builder.compiler() is None


@pytest.mark.parametrize("compiler", ["no-such-compiler", "false"])
def test_without_a_compiler_the_wheel_is_built_without_it(compiler, monkeypatch, tmp_path):
    if compiler == "false" and not shutil.which("false"):
        pytest.skip("no command of this name")
    monkeypatch.setenv("CC", compiler)
    monkeypatch.delenv(loader.SWITCH, raising=False)
    data = {"force_include": {}, "pure_python": True}
    assert builder.add_to_build(ROOT, tmp_path, "standard", data) != ""
    assert data == {"force_include": {}, "pure_python": True}
    assert list(tmp_path.iterdir()) == []


@needs_compiler
def test_a_wheel_with_it_is_for_one_platform_and_every_python(tmp_path, monkeypatch):
    monkeypatch.delenv(loader.SWITCH, raising=False)
    data = {"force_include": {}, "pure_python": True}
    assert builder.add_to_build(ROOT, tmp_path, "standard", data) == ""
    assert list(data["force_include"].values()) == ["regard/kernels/row_pass.so"]
    assert data["tag"].startswith("py3-none-")
    assert not data["pure_python"]
