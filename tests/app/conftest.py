"""What the tests of commands and of the server share."""

import pytest

from app.served import client, served
from regard.app.server.jobs import Jobs
from regard.app.server.limits import Limits
from regard.translator import look


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


LOOKS = {}


def look_once(translator, text, **options):
    """What ``look`` finds; a text is read again only with other options."""
    key = (translator, text, repr(sorted(options.items())))
    if key not in LOOKS:
        LOOKS[key] = look(translator, text, **options)
    return LOOKS[key]


@pytest.fixture
def read_once(monkeypatch):
    """Commands share what the built-in translator has read; not for tests that edit its attention."""
    monkeypatch.setattr("regard.translator.look", look_once)


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A command runs in an empty folder."""
    monkeypatch.chdir(tmp_path)
