"""Pieces of work side by side: where they run, what they see of torch's settings, and how they fail."""

import functools
import os
import subprocess
import sys
import threading
import time
from importlib import import_module

import pytest
import torch

import regard
from regard import masks, threads
from regard.kernels import attention_with_lse
from regard.openmp import parallel_region
from regard.threads import each, spread

# The tests around this file run with one thread, where everything runs in place.


@pytest.fixture(autouse=True, params=["torch's pool", "own threads"])
def place(request, monkeypatch):
    """Where pieces run."""
    if request.param == "torch's pool" and parallel_region() is None:
        pytest.skip("torch has another pool here")
    monkeypatch.setattr(threads, "MAX_POOL_SIZE", 1 << 60 if request.param == "torch's pool" else 0)
    return request.param


@pytest.fixture
def own_threads(place):
    if place != "own threads":
        pytest.skip("about our own threads")


@pytest.fixture
def two_threads():
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


@pytest.fixture
def three_threads():
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(1)


def here():
    return threading.current_thread().name


def meeting(parties):
    """A piece of work that ends only when a given number of its kind run at the same time."""
    barrier = threading.Barrier(parties, timeout=20)

    def meet(item):
        barrier.wait()
        return item, here(), torch.get_num_threads()

    return meet


def test_pieces_run_side_by_side_with_torch_at_one_thread(three_threads, place):
    found = spread(lambda: each(meeting(3), range(6)))
    assert [item for item, _, _ in found] == list(range(6))
    assert {count for _, _, count in found} == {1}
    assert ({name for _, name, _ in found} == {"regard"}) == (place == "own threads")
    assert torch.get_num_threads() == 3


def test_long_work_has_threads_of_its_own(two_threads, monkeypatch):
    monkeypatch.setattr(threads, "MAX_POOL_SIZE", 1 << 30)
    names = {name for _, name, _ in spread(lambda: each(meeting(2), range(2)), size=1 << 30)}
    assert names == {"regard"}
    if parallel_region() is not None:
        names = {name for _, name, _ in spread(lambda: each(meeting(2), range(2)), size=(1 << 30) - 1)}
        assert here() in names


def test_an_interrupted_piece_ends_the_work(two_threads):
    begun = []

    def piece(number):
        begun.append(number)
        if len(begun) == 3:
            raise KeyboardInterrupt
        time.sleep(0.005)

    with pytest.raises(KeyboardInterrupt):
        spread(lambda: each(piece, range(1000)))
    assert len(begun) < 10
    assert spread(lambda: each(lambda x: x, range(3))) == [0, 1, 2]


def test_torch_keeps_its_threads_for_everybody_else(two_threads):
    spread(lambda: each(lambda _: torch.randn(50, 50) @ torch.randn(50, 50), range(5)))
    others = []
    thread = threading.Thread(target=lambda: others.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert (torch.get_num_threads(), others) == (2, [2])


def test_with_one_thread_everything_runs_in_place():
    assert torch.get_num_threads() == 1
    assert spread(lambda: each(lambda _: here(), range(3))) == [here()] * 3


def test_little_work_runs_in_place(two_threads):
    assert spread(lambda: each(lambda _: here(), range(3)), size=threads.MIN_SPREAD_SIZE - 1) == [here()] * 3


def test_each_outside_of_spread_runs_in_place(two_threads):
    assert each(lambda _: here(), range(3)) == [here()] * 3


def test_spread_inside_of_a_piece_runs_in_place(two_threads):
    def piece(number):
        thread = threading.get_ident()
        inner = spread(lambda: each(lambda _: threading.get_ident(), range(4)))
        return number, set(inner) == {thread}

    assert spread(lambda: each(piece, range(4))) == [(number, True) for number in range(4)]


def test_spread_inside_of_spread_keeps_the_threads(two_threads):
    assert len(spread(lambda: spread(lambda: each(meeting(2), range(2))))) == 2


def test_a_single_item_may_spread_itself(two_threads):
    (found,) = spread(lambda: each(lambda _: each(meeting(2), range(2)), [0]))
    assert len(found) == 2


def test_of_several_errors_the_first_is_raised_and_nothing_further_begins(two_threads):
    begun = []
    meet = meeting(2)

    def piece(number):
        begun.append(number)
        if number < 2:
            meet(number)
            raise ValueError(f"piece {number}")
        time.sleep(0.01)

    with pytest.raises(ValueError, match="piece 0"):
        spread(lambda: each(piece, range(50)))
    assert len(begun) < 10
    assert spread(lambda: each(lambda x: x, range(3))) == [0, 1, 2]  # the threads are still good


def test_where_no_thread_can_be_started_it_runs_in_place(two_threads, monkeypatch, own_threads):
    def refuse(worker):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads._Worker, "start", refuse)
    monkeypatch.setattr(threads, "_idle", [])
    assert spread(lambda: each(lambda _: here(), range(3))) == [here()] * 3
    assert torch.get_num_threads() == 2


def test_an_interrupted_wait_ends_the_work_first(two_threads, monkeypatch, own_threads):
    running, interrupted = threading.Event(), threading.Event()
    state = {"going": 0}

    def piece(number):
        running.set()
        interrupted.wait(20)
        state["going"] += 1

    plain = threads._Task.wait

    def interrupting(task):
        if here() == "MainThread":
            running.wait(20)
            interrupted.set()
            raise KeyboardInterrupt
        return plain(task)

    monkeypatch.setattr(threads._Task, "wait", interrupting)
    with pytest.raises(KeyboardInterrupt):
        spread(lambda: each(piece, range(1000)))
    after = state["going"]
    time.sleep(0.05)
    assert state["going"] == after < 1000


@pytest.mark.parametrize(
    "mode",
    [
        torch.no_grad,
        torch.enable_grad,
        torch.inference_mode,
        lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    ],
)
def test_modes_that_belong_to_a_thread_are_those_around(mode, two_threads):
    x = torch.randn(4, 4, requires_grad=True)

    def facts(_):
        y = x @ x
        return y.dtype, y.requires_grad, y.is_inference(), torch.is_grad_enabled()

    with mode():
        wanted = facts(0)
        assert spread(lambda: each(facts, range(4))) == [wanted] * 4
    assert spread(lambda: each(facts, range(4))) == [(torch.float32, True, False, True)] * 4


def test_under_modes_that_see_every_function_it_runs_in_place(two_threads):
    class Counting(torch.overrides.TorchFunctionMode):
        count = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            Counting.count += 1
            return func(*args, **(kwargs or {}))

    with Counting():
        assert spread(lambda: each(lambda _: here(), range(3))) == [here()] * 3
    with torch.device("cpu"):
        assert spread(lambda: each(lambda _: here(), range(3))) == [here()] * 3


def test_under_transforms_it_runs_in_place(two_threads):
    names = []

    def function(x):
        names.extend(spread(lambda: each(lambda _: here(), range(2))))
        return x.sum()

    torch.func.vmap(function)(torch.randn(2, 3))
    assert set(names) == {here()}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("place", ["own threads"], indirect=True)
def test_after_a_fork_there_are_new_threads():
    """In a process of its own, where nothing else has begun a thread."""
    code = """
import os, torch
torch.set_num_threads(2)
from regard.threads import each, spread
def pieces(): return spread(lambda: each(lambda x: x * x, range(4)))
assert pieces() == [0, 1, 4, 9]
child = os.fork()
if not child:
    os._exit(0 if pieces() == [0, 1, 4, 9] else 3)
assert os.waitpid(child, 0)[1] == 0
assert pieces() == [0, 1, 4, 9]
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# ---- what is computed in pieces ----------------------------------------------------------------

N = 150  # several tiles
MASKS = {
    "window": masks.window(40, 20),
    "documents": masks.documents(torch.arange(N) // 30) & masks.causal(),
    "local_global": masks.local_global(16),
    "by batch": masks.padding(lengths=[N, 65]) & masks.window(50, 0),
    "by head": masks.dense(torch.arange(4).view(1, 4, 1, 1) % 3 > 0) & masks.window(30, 3),
    "causal": masks.causal(),
}
OPTIONS = {
    "plain": lambda: {},
    "softcap": lambda: {"softcap": 1.5},
    "bias": lambda: {"bias": torch.linspace(-1, 1, 4 * N).view(1, 4, 1, N).requires_grad_()},
    "sinks": lambda: {"sinks": torch.linspace(-1, 1, 4).requires_grad_()},
    "dropout": lambda: {"dropout": 0.3},
}


def everything_of(mask, option, kv_heads=2):
    """Output, lse, gradients and statistics of one call."""
    torch.manual_seed(3)
    q = torch.randn(2, 4, N, 8, requires_grad=True)
    k, v = (torch.randn(2, kv_heads, N, 8, requires_grad=True) for _ in range(2))
    options = option()
    output, lse = attention_with_lse(q, k, v, mask=mask, **options)
    leaves = [q, k, v, *(x for x in options.values() if isinstance(x, torch.Tensor))]
    grads = torch.autograd.grad((output * torch.linspace(-1, 1, 8)).sum(), leaves)
    fixed = {name: x for name, x in options.items() if name != "dropout"}
    statistics = regard.attention_statistics(q, k, v, mask=mask, top=3, **fixed)
    return [output, lse, *grads, *(x for x in vars(statistics).values() if x is not None)]


@functools.cache  # for both places
def in_one_thread(mask, option):
    return everything_of(MASKS[mask], OPTIONS[option])


@pytest.mark.usefixtures("always_tiled")
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("mask", MASKS)
def test_results_do_not_depend_on_the_number_of_threads(mask, option, monkeypatch):
    wanted = in_one_thread(mask, option)
    monkeypatch.setattr(threads, "MIN_SPREAD_SIZE", 0)
    for count in (2, 5):
        torch.set_num_threads(count)
        try:
            found = everything_of(MASKS[mask], OPTIONS[option])
        finally:
            torch.set_num_threads(1)
        for mine, its in zip(found, wanted, strict=True):
            torch.testing.assert_close(mine, its, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("causal", [False, True])
def test_linear_attention_does_not_depend_on_the_number_of_threads(causal, monkeypatch):
    q = torch.randn(2, 4, N, 8, requires_grad=True)
    k, v = (torch.randn(2, 2, N, 8) for _ in range(2))

    def made():
        output = regard.linear_attention(q, k, v, causal=causal)
        return output, *torch.autograd.grad(output.square().sum(), q)

    wanted = made()
    monkeypatch.setattr(threads, "MIN_SPREAD_SIZE", 0)
    monkeypatch.setattr(import_module("regard.kernels.linear_kernel"), "MIN_SPREAD_SIZE", 0)
    torch.set_num_threads(3)
    try:
        found = made()
    finally:
        torch.set_num_threads(1)
    for mine, its in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, its)


def test_a_watched_model_is_computed_in_pieces_and_seen_once(two_threads, always_tiled, monkeypatch):
    monkeypatch.setattr(threads, "MIN_SPREAD_SIZE", 0)
    used = []
    for kind in (threads._ThreadGroup, threads._Pool):
        plain = kind.share
        monkeypatch.setattr(kind, "share", lambda *given, f=plain: used.append(1) or f(*given))
    layer = torch.nn.MultiheadAttention(16, 2, batch_first=True)
    x = torch.randn(1, N, 16)
    allowed = masks.window(9, 9).dense(N)
    with regard.watch(layer, statistics=True) as seen, torch.no_grad():
        output, _ = layer(x, x, x, attn_mask=~allowed, need_weights=False)
    assert used
    assert len(seen) == 1
    with torch.no_grad():
        torch.testing.assert_close(layer(x, x, x, attn_mask=~allowed, need_weights=False)[0], output)


def test_pages_tables_and_maps_do_not_depend_on_the_number_of_threads(tmp_path, monkeypatch):
    from regard.recording import Recording, ScoredCall
    from regard.views.map import HeadMatrix, build

    torch.manual_seed(0)
    calls = []
    for layer in range(3):
        q, k = torch.randn(1, 2, 150, 8), torch.randn(1, 2, 150, 8)
        lse = torch.logsumexp(q @ k.mT * 8**-0.5, -1)
        calls.append(ScoredCall(f"layer{layer}", "encoder", layer, q, k, lse, scale=8**-0.5))
    recording = Recording("model", calls)

    def made(name):
        regard.page(recording, tmp_path / name)
        shares = []
        levels = build(HeadMatrix(calls[0], 1), shares.append)
        assert shares == sorted(shares)
        assert shares[-1] == 1.0
        return (tmp_path / name).read_bytes(), regard.heads.table(recording), levels

    page, table, levels = made("one.html")
    monkeypatch.setattr(threads, "MIN_SPREAD_SIZE", 0)
    torch.set_num_threads(3)
    try:
        other_page, other_table, other_levels = made("three.html")
    finally:
        torch.set_num_threads(1)
    assert page == other_page
    assert table == other_table
    torch.testing.assert_close(levels.received, other_levels.received)
    assert all(map(torch.equal, levels.sums, other_levels.sums))


def test_a_map_that_is_called_off_ends(two_threads, monkeypatch):
    from regard.recording import ScoredCall
    from regard.views.map import HeadMatrix, build

    monkeypatch.setattr(threads, "MIN_SPREAD_SIZE", 0)
    q = torch.randn(1, 1, 700, 8)
    call = ScoredCall("a", "encoder", 0, q, q, torch.logsumexp(q @ q.mT, -1), scale=1.0)

    def enough(share):
        raise TimeoutError(share)

    with pytest.raises(TimeoutError):
        build(HeadMatrix(call, 0), enough)
