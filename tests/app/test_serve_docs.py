"""docs/serve.md is what the server does."""

import re
from pathlib import Path

import numpy as np

from app.served import running, served
from regard.app.main import main
from regard.app.server.limits import Limits
from regard.app.server.safety import ServerAddress
from regard.app.server.server_state import WHOLE_PAGE

TEXT = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")


def test_every_option_is_described():
    options = {name for option in main.commands["serve"].params for name in option.opts}
    assert options == set(re.findall(r"`(--[a-z-]+)[ `]", TEXT.split("## The map")[0])) | {"--port"}


def test_the_bounds_are_those_of_the_server():
    limits = Limits()
    assert f"{limits.tokens:,} by default" in TEXT
    assert "Up to eight jobs\nmay wait" in TEXT
    assert limits.waiting == 8
    assert "three threads of the server" in TEXT
    assert limits.workers == 3
    assert "two of the three threads at a time, and five jobs" in TEXT
    assert (limits.client_running, limits.client_jobs) == (2, 5)
    for line in (
        f"| header of a request | {limits.header_seconds:g} seconds",
        f"| body of a request | {limits.body_seconds:g} seconds",
        f"| connection without a request | {limits.idle_seconds:g} seconds",
        f"| answer that the client does not receive | {limits.stall_seconds:g} seconds",
        f"| connections | {limits.connections} in total, {limits.client_connections} per client",
    ):
        assert line in TEXT
    assert "longer than 15 minutes" in TEXT
    assert limits.job_seconds == 15 * 60
    assert "for 15 seconds" in TEXT
    assert limits.patience == 15
    assert "Up to 1.5 GB of texts and 0.5 GB of\nlevels" in TEXT
    assert (limits.recording_bytes, limits.level_bytes) == (1.5e9, 0.5e9)
    assert "over 24 MB" in TEXT
    assert WHOLE_PAGE == 24e6


def test_the_example_runs():
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    kept = {}

    def app_of(port):
        kept["app"] = served(server_address=ServerAddress(port=port))
        return kept["app"]

    with running(app_of) as base:
        names = {}
        exec(code.replace("http://127.0.0.1:8000", base), names)
        names["server"].close()
    entry = kept["app"].server_state.library.get(names["name"])
    np.testing.assert_array_equal(names["weights"], entry.calls[0].weights(1))
