"""What the tests of commands and of the server share."""

import pytest

from app.served import client, served
from regard.app.server.jobs import Jobs
from regard.app.server.limits import Limits


@pytest.fixture(scope="module")
def http():
    """A client of the app over one recording; what a module's tests leave in it, others do not see."""
    with client(served()) as found:
        yield found


@pytest.fixture
def jobs():
    """Makes queues of jobs, and closes them."""
    made = []

    def make(**limits):
        made.append(Jobs(Limits(**limits)))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A command runs in an empty folder."""
    monkeypatch.chdir(tmp_path)
