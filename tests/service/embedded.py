"""Embedded services forked from a process that has loaded them, for tests of what they do and not of their start."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import cast
from unittest import mock

from tensorkiln import embedded
from tensorkiln.compiler_build import SERVER
from tests.service.forked import forked_services


def _spawn(path: Path, log: Path, home: Path) -> subprocess.Popen[bytes]:
    """As that of `tensorkiln.embedded`."""
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
    """In the block, embedded services are forked."""
    with mock.patch.object(embedded, "_spawn", _spawn):
        yield
