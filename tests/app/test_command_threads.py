"""The command line lets torch's threads sleep while they wait, unless the user says otherwise."""

import os

import pytest
from click.testing import CliRunner

from regard.app.main import main


@pytest.mark.parametrize(("own", "wanted"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_every_command_sets_the_passive_policy_unless_there_is_one(monkeypatch, own, wanted):
    monkeypatch.setenv("OMP_WAIT_POLICY", own or "")
    if own is None:
        monkeypatch.delenv("OMP_WAIT_POLICY")
    assert CliRunner().invoke(main, ["mask", "causal()"]).exit_code == 0
    assert os.environ["OMP_WAIT_POLICY"] == wanted
    monkeypatch.setenv("OMP_WAIT_POLICY", wanted)  # so that it is undone
