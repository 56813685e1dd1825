"""A server to measure: a Llama-shaped model with random weights, started the way users start it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import THREADS

WORDS = [f"w{number}" for number in range(997)]


def write_model(folder: Path, longest: int) -> None:
    """4 layers of 8 heads × 64, and a tokenizer of whole words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=512,
        intermediate_size=1024,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=8,
        vocab_size=len(WORDS),
        max_position_embeddings=longest,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    made = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token=WORDS[0]))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=made, unk_token=WORDS[0]).save_pretrained(folder)


def text_of(length: int, seed: int = 0) -> str:
    """Words in random order."""
    import random

    chance = random.Random(seed)
    return " ".join(chance.choice(WORDS) for _ in range(length))


@dataclass
class Server:
    """A running server."""

    port: int
    process: subprocess.Popen[bytes]
    started: float  # seconds until it answered

    def client(self) -> Client:
        return Client(self.port)

    def megabytes(self, name: str) -> float:
        """``VmRSS`` now, ``VmHWM`` at the peak."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


class Client:
    """One connection that stays open."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        data = None if body is None else json.dumps(body).encode()
        headers = {} if data is None else {"Content-Type": "application/json"}
        self.connection.request(method, path, data, headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def json(self, method: str, path: str, body: object = None) -> Any:
        status, content = self.ask(method, path, body)
        if status >= 400:
            raise RuntimeError(f"{method} {path}: {status} {content[:300]!r}")
        return json.loads(content)

    def finish(self, job: dict[str, Any] | None) -> dict[str, Any]:
        """Wait for a job."""
        while job is not None and job["state"] in ("waiting", "running"):
            time.sleep(0.02)
            job = self.json("GET", f"/api/jobs/{job['id']}?after={job['version']}&wait=10")
        if job is not None and job["state"] != "done":
            raise RuntimeError(f"a job ended with {job}")
        return {} if job is None else dict(job["result"])


@contextlib.contextmanager
def running(*options: str) -> Iterator[Server]:
    """``regard serve`` with these options, on a free port of the loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "OMP_NUM_THREADS": str(THREADS), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "regard", "serve", "--port", str(port), *options]
    begin = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        while True:
            try:
                Client(port).json("GET", "/api/state")
                break
            except OSError:
                if process.poll() is not None:
                    raise RuntimeError("the server did not start") from None
                time.sleep(0.05)
        yield Server(port, process, time.perf_counter() - begin)
    finally:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
        process.kill()
        process.wait()
