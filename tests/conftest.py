import ctypes
import gc
import os
import sys
from pathlib import Path

# One thread for torch, for OpenBLAS of NumPy and in every process that tests start; so before any of them is
# imported. Calls are tiny: a second thread costs more than it helps, and far more beside other workers.
os.environ["OMP_NUM_THREADS"] = "1"

from regard import machine

machine.prepare()  # before torch is imported: on some machines a product in bfloat16 ends the process

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

from fuzz.rounds import ROUNDS  # noqa: E402

settings.register_profile("regard", deadline=None, max_examples=20 * ROUNDS, derandomize=True)
settings.load_profile("regard")

TESTS = Path(__file__).parent


def _keep_memory():
    """Let glibc keep what tests free: matrices of megabytes come and go, and fresh memory is slow."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(-3, 32 * 2**20)  # M_MMAP_THRESHOLD: above it, a block is given back to the system at once
        mallopt(-1, 256 * 2**20)  # M_TRIM_THRESHOLD: how much free memory at the end of the heap is kept


_keep_memory()


@pytest.hookimpl(optionalhook=True)  # only pytest-xdist asks
def pytest_xdist_auto_num_workers():
    """One worker more than there are cores, as some wait for a browser or a process; each takes 2 GB."""
    own = getattr(os, "sched_getaffinity", None)  # not on every system
    cores = len(own(0)) if own else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 2**33
    return max(1, min(cores + 1, memory // (5 * 2**29)))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Files of views, which mostly wait for a browser, evenly among those that compute; doctests last."""
    files = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    own = [path for path in files if TESTS in path.parents]
    waiting = [path for path in own if path.parent == TESTS / "views"]
    computing = [path for path in own if path.parent != TESTS / "views"]
    spread = sorted(
        (place / len(some), path) for some in (waiting, computing) for place, path in enumerate(some)
    )
    order = [path for _, path in spread] + [path for path in files if path not in set(own)]
    items[:] = [item for path in order for item in files[path]]


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is imported stays: the garbage collector need not look through it, neither now nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def _same_chance():
    import torch  # not above: the process that hands the tests out to the others does not need it

    torch.default_generator.manual_seed(0)  # torch.manual_seed() also asks for every other kind of device


@pytest.fixture
def always_tiled(monkeypatch):
    """Plans as if every sequence were long, so that short tests reach the tiled paths."""
    from importlib import import_module

    plan = import_module("regard.kernels.planner")
    monkeypatch.setattr(plan, "MAX_MASKED_PAIRS", 0)
    plan._cached_plan.cache_clear()
    yield
    plan._cached_plan.cache_clear()


@pytest.fixture(scope="session")
def model_folders(tmp_path_factory):
    """Small transformers models, each in its folder."""
    from small_models import save_small_models

    return save_small_models(tmp_path_factory.mktemp("models"))
