"""A load test of the server: 20 clients for 60 seconds, on the loopback only. No errors, steady memory.

python benchmarks/map_load.py
python benchmarks/map_load.py --seconds 5 --clients 4 --tokens 600 --quick     # writes nothing
"""

from __future__ import annotations

import argparse
import http.client
import random
import statistics
import tempfile
import threading
import time
from pathlib import Path

from harness import Row, report
from map_server import Client, Server, running, text_of, write_model

READINGS = 0.02
"""The share of requests that are new texts."""


class Crowd:
    """Clients that request what a browser requests."""

    def __init__(self, server: Server, name: str, model: str, tokens: int) -> None:
        self.server = server
        self.names = [name]
        self.model = model
        self.tokens = tokens
        self.took: list[float] = []
        self.errors: list[str] = []
        self.refused = 0
        self.lock = threading.Lock()

    def walk(self, seed: int, end: float) -> None:
        chance = random.Random(seed)
        client = self.server.client()
        while time.perf_counter() < end:
            begin = time.perf_counter()
            try:
                self.step(client, chance)
            except (RuntimeError, OSError, http.client.HTTPException) as error:
                with self.lock:
                    self.errors.append(repr(error))
                client = self.server.client()
            with self.lock:
                self.took.append(1000 * (time.perf_counter() - begin))

    def step(self, client: Client, chance: random.Random) -> None:
        if chance.random() < READINGS:
            self.read(client, chance)
            return
        name, head = self.names[0], chance.randrange(8)
        side = -(-self.tokens // 256)
        kind = chance.choice(("near", "near", "near", "peak", "map", "page", "state"))
        if kind == "near":
            level = chance.choice((0, 0, 1, 2))
            most = max(1, side >> level)
            row, column = (chance.randrange(most) for _ in range(2))
            path = f"tiles/{chance.randrange(4)}/{head}/{level}/{row}/{column}"
            self.expect(client.ask("GET", f"/api/recordings/{name}/{path}"), (200,), path)
        elif kind == "peak":
            row, column = (chance.randrange(self.tokens) for _ in range(2))
            path = f"peaks/{chance.randrange(4)}/{head}/0/{row}/{column}"
            self.expect(client.ask("GET", f"/api/recordings/{name}/{path}"), (200,), path)
        elif kind == "map":
            body = {"call": chance.randrange(4), "head": head, "sinks": chance.choice(("show", "first"))}
            status, content = client.ask("POST", f"/api/recordings/{name}/maps", body)
            self.expect((status, content), (200, 202, 429), "maps")
            self.refused += status == 429
        elif kind == "page":
            self.expect(client.ask("GET", f"/map/{name}"), (200,), "page")
        else:
            self.expect(client.ask("GET", "/api/state"), (200,), "state")

    def read(self, client: Client, chance: random.Random) -> None:
        text = text_of(chance.randrange(10, 80), seed=chance.randrange(10**6))
        status, content = client.ask("POST", "/api/readings", {"model": self.model, "text": text})
        self.expect((status, content), (202, 429), "reading")
        self.refused += status == 429

    def expect(self, answer: tuple[int, bytes], good: tuple[int, ...], what: str) -> None:
        status, content = answer
        if status not in good:
            raise RuntimeError(f"{what}: {status} {content[:200]!r}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--quick", action="store_true")
    told = parser.parse_args()
    clients, seconds = min(told.clients, 64), min(told.seconds, 600.0)
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder), told.tokens)
        with running("--model", folder, "--max-tokens", str(told.tokens)) as server:
            client = server.client()
            model = next(
                one["id"] for one in client.json("GET", "/api/state")["models"] if one["id"] != "translator"
            )
            job = client.json("POST", "/api/readings", {"model": model, "text": text_of(told.tokens)})["job"]
            crowd = Crowd(server, client.finish(job)["recording"], model, told.tokens)
            end = time.perf_counter() + seconds
            threads = [threading.Thread(target=crowd.walk, args=(seed, end)) for seed in range(clients)]
            for thread in threads:
                thread.start()
            memory = []
            while any(thread.is_alive() for thread in threads):
                memory.append(server.megabytes("VmRSS"))
                time.sleep(0.5)
    third = max(1, len(memory) // 3)
    middle, last = statistics.median(memory[third : 2 * third] or memory), statistics.median(memory[-third:])
    said = f"{clients} clients for {seconds:g} s on {told.tokens:,} tokens"
    rows = [
        Row(
            f"{said}: answers",
            f"{len(crowd.took):,}, {len(crowd.took) / seconds:.0f} per second, {len(crowd.errors)} errors, "
            f"{crowd.refused} times the queue was full",
            "–",
            f"median {statistics.median(crowd.took):.0f} ms",
            "no error",
            not crowd.errors,
        ),
        Row(
            f"{said}: memory",
            f"{last:.0f} MB in the last third",
            f"{middle:.0f} MB in the middle third",
            f"{last / middle:.2f}×",
            "≤ 1.15×",
            last <= 1.15 * middle,
        ),
    ]
    for error in crowd.errors[:5]:
        print(error)
    if told.quick:
        for one in rows:
            print(f"{one.work}: {one.ours}, {one.ratio}")
        return
    report("map_load", "The server under load", rows)


if __name__ == "__main__":
    main()
