"""Services, workers and embedded services that are forked from a process that has loaded them."""

from __future__ import annotations

import atexit
import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import cast
from unittest import mock

from service.sandbox.spawn import FIXED
from tensorkiln import embedded
from tensorkiln.compiler_build import SERVER
from tests.forked import Forked


@cache
def forked_services() -> Forked:
    """Starts services and workers. There is one for each process that runs tests, and they end with it."""
    # Its fork servers are to have the hash seed of all others.
    forked = Forked("tests.service.loaded", **FIXED)
    atexit.register(forked.__exit__, None, None, None)
    return forked


def _spawn(path: Path, log: Path, home: Path) -> subprocess.Popen[bytes]:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    given, stdin = os.pipe()
    printed, stdout = os.pipe()
    with log.open("wb") as output:
        process = forked_services().start(
            *("tensorkiln.parent_watchdog", str(path.parent), SERVER, "--private", "--uds", str(path)),
            cwd=Path.cwd(),
            env=embedded._environment(home),  # pyright: ignore[reportPrivateUsage]
            stderr=output.fileno(),
            stdout=stdout,
            stdin=given,
            has_session=True,
        )
    os.close(given)
    os.close(stdout)
    process.stdin, process.stdout = os.fdopen(stdin, "wb"), os.fdopen(printed, "rb")
    return cast(subprocess.Popen[bytes], process)


@contextmanager
def forked_embedding() -> Generator[None]:
    with mock.patch.object(embedded, "_spawn", _spawn):
        yield
