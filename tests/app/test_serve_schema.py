"""Requests made up from the description of the interface: none of them breaks the server."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from app.served import running, served
from fuzz.rounds import ROUNDS
from regard.app.server.limits import Limits
from regard.app.server.openapi import schema
from regard.app.server.safety import ServerAddress

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


DESCRIBED = schema(Limits())
OPERATIONS = [(method, path) for path, methods in DESCRIBED["paths"].items() for method in methods]


@pytest.fixture(scope="module")
def described():
    # A full queue is one of the answers that may come.
    with running(
        lambda port: served(server_address=ServerAddress(port=port), waiting=3, patience=1.0)
    ) as base:
        yield schemathesis.openapi.from_url(f"{base}/openapi.json")


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=str)
def test_nothing_breaks(described, method, path):
    operation = described[path][method.upper()]

    @settings(
        max_examples=6 * ROUNDS,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(), st.booleans())
    def send(case, known):
        # Most made-up names are of nobody: half of the time the recording is one that is there.
        if known and "recording" in (case.path_parameters or {}):
            case.path_parameters["recording"] = "book"
            for name, most in (("call", 2), ("head", 2), ("level", 4), ("row", 6), ("column", 6)):
                if isinstance(case.path_parameters.get(name), int):
                    case.path_parameters[name] %= most
        case.call_and_validate(checks=CHECKS)

    send()
