"""What breaks is seen within 15 s, by probes and by `kiln doctor`, and so is its return."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.observe.readiness import RED_WITHIN_S, await_green, await_red, failed, without_fork_server
from tests.service.server import Server


@contextmanager
def without_store(home: Path) -> Any:
    """A file is where the store was."""
    store, aside = home / "store", home / "aside"
    store.rename(aside)
    store.write_text("")
    try:
        yield
    finally:
        store.unlink()
        aside.rename(store)


Break = Callable[[Server], AbstractContextManager[Any]]
BREAKS: dict[str, Break] = {
    "canary": lambda server: without_fork_server(server.pid),
    "store": lambda server: without_store(server.home),
}


@pytest.mark.parametrize("check", BREAKS)
def test_what_breaks_in_a_service_is_seen(tmp_path: Path, check: str) -> None:
    with Server(tmp_path / "kiln") as server:
        assert failed(server.url) == {}
        assert doctor(server.url, tmp_path)[0] == 0
        with BREAKS[check](server):
            see(server.url, check)
            status, found = doctor(server.url, tmp_path)
            assert status == 1
            assert f"{check}: " in found
        await_green(server.url)
        assert doctor(server.url, tmp_path)[0] == 0


def see(url: str, check: str) -> None:
    """Wait for a check to fail, and print how long that took."""
    begin = time.monotonic()
    await_red(url, check)
    took = time.monotonic() - begin
    print(f"{check} was seen to fail after {took:.1f} s of {RED_WITHIN_S:g}")


def doctor(url: str, home: Path) -> tuple[int, str]:
    """The exit status of `kiln doctor`, and what it says of the service's readiness."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
    own = {"KILN_HOME": str(home / "user"), "KILN_CONFIG_DIR": str(home / "config")}
    command = [sys.executable, "-W", "error", "-m", "tensorkiln.cli", "doctor", "--json", "--url", url]
    done = subprocess.run(command, env={**clean, **own}, capture_output=True, text=True, timeout=120)
    findings = json.loads(done.stdout)["findings"]
    return done.returncode, next(each["found"] for each in findings if each["part"] == "readiness")
