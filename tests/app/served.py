"""A server for tests: small recordings, a model that reads words, and clients."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from starlette.testclient import TestClient

from regard import masks, watch
from regard.app.server.limits import Limits
from regard.app.server.model_label import architecture
from regard.app.server.model_progress import heard, held
from regard.app.server.recording_store import RecordingStore
from regard.app.server.run_server import Server, make_app
from regard.app.server.safety import ServerAddress
from regard.app.server.served_models import EXAMPLES
from regard.app.server.token_count import TokenCount, fitting
from regard.recording import Recording
from views.exact_weights import made

BASE = "http://127.0.0.1:8000"


def book(length: int = 1097, heads: int = 2) -> Recording:
    """A decoder of two layers over a text of some length, with the real lse."""
    calls = []
    for layer in range(2):
        call = made(length, length, mask=masks.causal(), heads=heads, channels=5, size=1.6, seed=layer)
        calls.append(type(call)(**{**vars(call), "name": f"layers.{layer}", "layer": layer}))
    seen = Recording("Toy", calls)
    seen.tokens = ["<s>", *(f"word{number}" for number in range(1, length))]
    return seen


def translation() -> Recording:
    """An encoder, a decoder and cross-attention over two texts."""
    calls = []
    for layer, (kind, queries, keys) in enumerate((("encoder", 19, 19), ("decoder", 5, 5), ("cross", 5, 19))):
        mask = masks.causal() if kind == "decoder" else masks.everything()
        call = made(queries, keys, mask=mask, channels=5, heads=2, seed=layer)
        calls.append(type(call)(**{**vars(call), "name": f"m.{kind}", "kind": kind}))
    seen = Recording("Two", calls)
    seen.tokens, seen.source_tokens = list("猫坐在垫上"), [f"w{number}" for number in range(19)]
    return seen


@dataclass
class Words:
    """A model that reads words: one layer of torch, slowed down where a test wants to watch."""

    id: str = "words"
    label: str = "Words"
    pause: float = 0.0
    layers: int = 1
    longest: int = 10**9
    lock: threading.Lock = field(default_factory=threading.Lock)
    read_texts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        torch.manual_seed(3)
        layer = torch.nn.TransformerEncoderLayer(16, 2, 16, batch_first=True)
        self.model = torch.nn.TransformerEncoder(layer, self.layers, enable_nested_tensor=False).eval()

    def count(self, text, most):
        ends = [found.end() for found in re.finditer(r"\S+", text)]
        return TokenCount(len(ends), fitting(text, ends, most))

    def described(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "label": self.label,
            **architecture(self.model),
            "kind": "encoder",
            "longest": None,
            "pair": False,
            "examples": EXAMPLES["encoder"],
        }

    def read(self, request, limits, report) -> Recording:
        del limits
        words = request.text.split()
        chance = torch.Generator().manual_seed(len(words))
        vectors = torch.randn(1, len(words), 16, generator=chance)

        def slow(share: float, stage: str | None = None) -> None:
            time.sleep(self.pause)
            report(share, stage)

        with (
            held(self.lock, report),
            heard(self.model, slow),
            torch.no_grad(),
            watch(self.model, values=True) as seen,
        ):
            self.model(vectors)
        seen.tokens = words
        self.read_texts.append(request.text)
        return seen


def served(
    *,
    models: list[Any] | None = None,
    keep: Path | None = None,
    server_address: ServerAddress | None = None,
    lang: str | None = None,
    **limits: Any,
) -> Any:
    """The app over one recording called ``book``."""
    own = Limits(**limits)
    library = RecordingStore(own.recording_bytes, keep)
    library.give(Path("/somewhere/secret/book.safetensors"), book())
    return make_app(
        [Words()] if models is None else models, library, server_address or ServerAddress(), own, lang=lang
    )


@contextlib.contextmanager
def serving(recordings: dict[str, Recording], **options: Any) -> Iterator[tuple[Any, str]]:
    """The app over more recordings, by their names, on a real server; and the server's address."""
    apps = []

    def app_of(port: int) -> Any:
        apps.append(served(server_address=ServerAddress(port=port), **options))
        for name, seen in recordings.items():
            apps[0].server_state.library.give(Path(f"{name}.safetensors"), seen)
        return apps[0]

    with running(app_of) as address:
        yield apps[0], address


def client(app: Any) -> TestClient:
    return TestClient(app, base_url=BASE, raise_server_exceptions=False)


def finished(http: Any, job: dict[str, Any], seconds: float = 30) -> dict[str, Any]:
    """The job when it has ended."""
    end = time.monotonic() + seconds
    while job["state"] in ("waiting", "running"):
        assert time.monotonic() < end, job
        job = http.get(f"/api/jobs/{job['id']}", params={"after": job["version"], "wait": 5}).json()
    return job


@contextlib.contextmanager
def running(app_of: Any, **limits: Any) -> Iterator[str]:
    """A real server on a free port of the loopback; ``app_of`` makes the app for a port."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    server = Server(app_of(port), Limits(**limits))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(timeout=10)
