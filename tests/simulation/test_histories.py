"""A farm keeps its guarantees in every simulated history, and the simulation detects injected faults."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .__main__ import main
from .faults import FAULTS
from .history import History
from .run import broken
from .setting import simulated

HISTORIES = 50
"""Histories per test run; `make simulate` runs more."""
WITHIN = 150
"""Each injected fault is detected within this many histories."""


def test_promises_are_kept_whatever_strikes() -> None:
    assert broken(range(1, 1 + HISTORIES)) == []


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_fault_that_is_put_in_is_found(fault: str) -> None:
    assert any(broken([seed], fault) for seed in range(1, 1 + WITHIN))


def test_a_history_is_what_its_seed_says() -> None:
    first, second, other = History(3), History(3), History(4)
    with simulated():
        for history in (first, second, other):
            history.run()
    assert first.told == second.told != other.told
    assert any("is killed" in each or "is frozen" in each for each in (*first.told, *other.told))


def test_the_command_prints_the_seeds_of_promises_that_were_broken() -> None:
    arguments = ("--histories", "20", "--fault", "level_unchecked")
    command = [sys.executable, "-W", "error", "-m", "tests.simulation", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "the level process" in done.stdout
    assert "again: python -m tests.simulation --tell --seed" in done.stdout
    assert "20 histories from seed 1 in" in done.stdout


def test_the_command_tells_what_happens(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["simulation", "--tell", "--seed", "3"])
    assert main() == 0
    assert "accepted the job" in capsys.readouterr().out
