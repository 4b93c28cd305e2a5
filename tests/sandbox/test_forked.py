"""What a process has been ended for stays what it is told to have ended by, though its service has it killed too."""

from __future__ import annotations

import os
import signal
from math import inf
from pathlib import Path

import pytest

from service.sandbox.control import Limits
from service.sandbox.forked import Forked
from service.sandbox.verdict import verdict
from tensorkiln.errors import CrashedError, DeadlineExceededError, LostWorkerError, TensorkilnError

LIMITS = Limits(deadline_s=3.0, memory_mib=64, file_mib=4)
LARGE_MIB = 1 << 20
"""More than any process has: none of its own memory counts."""


@pytest.fixture
def forked(tmp_path: Path) -> Forked:
    """A process that has a job, and does nothing about it."""
    stderr, stderr_of_child = os.pipe()
    os.set_blocking(stderr, False)
    pid = os.posix_spawnp("sleep", ["sleep", "600"], os.environ, setpgroup=0)
    os.close(stderr_of_child)
    return Forked(pid, os.pidfd_open(pid), stderr, tmp_path, LARGE_MIB, task=1, begun=0.0, deadline=inf)


def ended(forked: Forked) -> TensorkilnError:
    """How a process ended by what its fork server tells of it."""
    return verdict(forked.reap(), LIMITS, "codegen")


def await_death(forked: Forked) -> None:
    """Come back when the process has ended, and is not reaped."""
    os.waitid(os.P_PIDFD, forked.pidfd, os.WEXITED | os.WNOWAIT)


def test_one_that_nobody_waits_for_is_cancelled(forked: Forked) -> None:
    forked.cancel()
    assert isinstance(ended(forked), CrashedError)


def test_one_that_dies_of_its_deadline_is_not_cancelled(forked: Forked) -> None:
    # It has closed its socket, which its service sees, and the kernel has not ended it yet.
    os.kill(forked.pid, signal.SIGSTOP)
    forked.is_expired = True
    forked.cancel()
    assert isinstance(ended(forked), DeadlineExceededError)


def test_one_that_died_of_what_it_said_stays_cancelled(forked: Forked) -> None:
    forked.is_cancelled = True
    forked.kill()
    await_death(forked)
    forked.cancel()
    assert isinstance(ended(forked), CrashedError)


def test_one_that_somebody_else_has_killed_was_not_cancelled(forked: Forked) -> None:
    os.kill(forked.pid, signal.SIGKILL)
    await_death(forked)
    forked.cancel()
    assert isinstance(ended(forked), LostWorkerError)
