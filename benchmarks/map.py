"""Benchmarks of the map, over HTTP from a running server with 2 threads.

python benchmarks/map.py            # 16,384 tokens typed, 65,536 from a file; some minutes
python benchmarks/map.py --quick    # small, to check that it runs; writes nothing
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import THREADS, Row, report
from map_server import Client, Server, running, text_of, write_model

PARALLEL = 8

LONG = """
import sys, torch
from regard import masks
from regard.kernels import attention_with_lse
from regard.recording import Recording, ScoredCall
torch.set_num_threads({threads})
torch.manual_seed(0)
q, k = torch.randn(2, 1, 8, {n}, 64).unbind(0)
_, lse = attention_with_lse(q, k, k, mask=masks.causal(), scale=64 ** -0.5)
call = ScoredCall("layers.0", "decoder", 0, q, k, lse, mask=masks.causal(), scale=64 ** -0.5)
seen = Recording("Llama-shaped", [call])
seen.tokens = [f"w{{number}}" for number in range({n})]
seen.save(sys.argv[1])
"""


def milliseconds(server: Server, paths: Sequence[str], parallel: int) -> list[float]:
    """How long each answer took, with this many requests at a time."""
    shares = [paths[start::parallel] for start in range(parallel)]

    def work(own: Sequence[str]) -> list[float]:
        client = server.client()
        took = []
        for path in own:
            begin = time.perf_counter()
            status, content = client.ask("GET", path)
            took.append(1000 * (time.perf_counter() - begin))
            if status != 200 or not content:
                raise RuntimeError(f"{path}: {status} {content[:200]!r}")
        return took

    with ThreadPoolExecutor(parallel) as pool:
        return [one for part in pool.map(work, shares) for one in part]


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def row(work: str, value: str, wanted: str, met: bool) -> Row:
    return Row(work, value, "–", "–", wanted, met)


def coarsest(n: int) -> int:
    return max(0, (max(n, 1) - 1).bit_length() - 8)


def build(client: Client, name: str, head: int, call: int = 0) -> float:
    """Seconds until the coarsest tile of a head arrives."""
    begin = time.perf_counter()
    body = {"call": call, "head": head}
    client.finish(client.json("POST", f"/api/recordings/{name}/maps", body)["job"])
    keys = client.json("GET", f"/api/recordings/{name}")["calls"][call]["keys"]
    status, _ = client.ask("GET", f"/api/recordings/{name}/tiles/{call}/{head}/{coarsest(keys)}/0/0")
    assert status == 200
    return time.perf_counter() - begin


def tiles_at(name: str, level: int, n: int, count: int, chance: random.Random) -> list[str]:
    """Tiles anywhere in the lower triangle of layer 1."""
    side = -(-n // (256 * 2**level))
    places = [(row, chance.randrange(row + 1)) for row in (chance.randrange(side) for _ in range(count))]
    heads = [chance.randrange(8) for _ in places]
    return [
        f"/api/recordings/{name}/tiles/0/{head}/{level}/{row}/{column}"
        for head, (row, column) in zip(heads, places)
    ]


def typed(n: int, count: int) -> list[Row]:
    """A text of n tokens, read and looked at."""
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder), n)
        with running("--model", folder, "--max-tokens", str(n)) as server:
            client = server.client()
            model = next(
                one["id"] for one in client.json("GET", "/api/state")["models"] if one["id"] != "translator"
            )
            begin = time.perf_counter()
            job = client.json("POST", "/api/readings", {"model": model, "text": text_of(n)})["job"]
            name = client.finish(job)["recording"]
            read = time.perf_counter() - begin
            build(client, name, head=3)
            first = time.perf_counter() - begin
            near = milliseconds(server, tiles_at(name, 0, n, count, chance), PARALLEL)
            anew = build(client, name, head=5)
            level = coarsest(n)
            far = [
                f"/api/recordings/{name}/tiles/0/5/{max(0, level - at % 2)}/0/0" for at in range(count // 2)
            ]
            kept = milliseconds(server, far, PARALLEL)
            peak = server.megabytes("VmHWM") / 1024
    said = f"{n:,} tokens"
    return [
        row(
            f"{said}: text to first view of a head",
            f"{first:.1f} s (reading {read:.1f} s)",
            "< 60 s",
            first < 60,
        ),
        row(
            f"{said}: a tile at full zoom, {PARALLEL} at a time",
            f"median {statistics.median(near):.0f} ms, 95th {percentile(near, 0.95):.0f} ms",
            "< 60 ms, < 150 ms",
            statistics.median(near) < 60 and percentile(near, 0.95) < 150,
        ),
        row(f"{said}: zoomed-out levels of one head, first time", f"{anew:.1f} s", "< 10 s", anew < 10),
        row(
            f"{said}: a zoomed-out tile from the cache, {PARALLEL} at a time",
            f"median {statistics.median(kept):.0f} ms",
            "< 30 ms",
            statistics.median(kept) < 30,
        ),
        row(f"{said}: peak memory of the server", f"{peak:.2f} GB", "< 3 GB", peak < 3),
    ]


def opened(n: int, count: int) -> list[Row]:
    """A recording of n tokens from a file."""
    chance = random.Random(2)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "long.safetensors"
        subprocess.run([sys.executable, "-c", LONG.format(n=n, threads=THREADS), str(file)], check=True)
        with running("--recording", str(file)) as server:
            client = server.client()
            near = milliseconds(server, tiles_at("long", 0, n, count, chance), PARALLEL)
            took = build(client, "long", head=2)
            peak = server.megabytes("VmHWM") / 1024
    said = f"{n:,} tokens from a file (8 heads × 64)"
    return [
        row(f"{said}: until the server answers", f"{server.started:.1f} s", "opens", True),
        row(
            f"{said}: a tile at full zoom, {PARALLEL} at a time",
            f"median {statistics.median(near):.0f} ms, 95th {percentile(near, 0.95):.0f} ms",
            "opens",
            True,
        ),
        row(f"{said}: zoomed-out levels of one head, first time", f"{took:.1f} s", "opens", True),
        row(f"{said}: peak memory of the server", f"{peak:.2f} GB", "opens", True),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    parts: list[Callable[[], list[Row]]] = [
        lambda: typed(1500 if quick else 16_384, 16 if quick else 240),
        lambda: opened(3000 if quick else 65_536, 16 if quick else 160),
    ]
    rows = [one for part in parts for one in part()]
    if quick:
        for one in rows:
            print(f"{one.work}: {one.ours}")
        return
    report("map", "The map: a document over HTTP", rows)


if __name__ == "__main__":
    main()
