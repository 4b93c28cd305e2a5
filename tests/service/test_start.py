"""A service that cannot start says why in one line; a defect shows where it is."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from service.readiness.readiness import LIMITS, PATIENCE_S
from service.server.listen import listen
from service.settings import read_settings
from tensorkiln.errors import UnavailableError
from tests.forked import Process
from tests.service.forked import forked_services
from tests.service.server import children, jobs
from tests.service.test_service import complaints

SERVICE = ("-m", "service", "--port", "0")
KILN = ("-m", "tensorkiln.cli", "serve", "--port", "0")
COMMANDS = [SERVICE, KILN, ("-m", "service.trust", "list"), ("-m", "service.identity", "list")]
DEFECT = """
import runpy, sys
from service.engine.engine import Engine
async def start(self): return 1 // 0
Engine.start = start
sys.argv = ["service", "--port", "0"]
runpy.run_module("service", run_name="__main__")
"""


def environment_in(home: Path, **settings: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("KILN_", "OTEL_"))}
    return {**clean, "KILN_HOME": str(home), **settings}


def failed(home: Path, command: tuple[str, ...], **settings: str) -> list[str]:
    """What a service says that does not start, or a command beside it."""
    environment = environment_in(home, **settings)
    if command[1].startswith("service"):
        result = forked_services().run(*command[1:], cwd=Path.cwd(), env=environment)
    else:
        result = subprocess.run(
            [sys.executable, "-W", "error", *command], capture_output=True, text=True, env=environment, timeout=120
        )
    assert (result.returncode, result.stdout) == (1, "")
    return complaints(result.stderr)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_setting_that_does_not_do_is_named_in_one_line(home: Path, command: tuple[str, ...]) -> None:
    (line,) = failed(home, command, KILN_QUEUE="-1")
    assert line.startswith("KILN_QUEUE: it has to be at least 0")


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("KILN_STORE", "s4://bucket", "KILN_STORE"),
        ("KILN_STORE", "{home}/file/store", "Not a directory"),
        ("KILN_KEYS", "{home}/file", "There can be no keys in"),
        ("KILN_IDENTITY", "{home}/file", "Not a directory"),
        ("KILN_REQUIRE_ISOLATION", "external", "KILN_ISOLATION=bwrap"),
        ("KILN_TRACING", "1", "set OTEL_EXPORTER_OTLP_ENDPOINT"),
    ],
)
def test_so_are_the_others_and_what_to_do(home: Path, setting: str, value: str, reason: str) -> None:
    home.mkdir()
    (home / "file").write_text("")
    (line,) = failed(home, SERVICE, **{setting: value.replace("{home}", str(home))})
    assert setting in line
    assert reason in line


def test_keys_that_are_damaged_are_told_in_one_line(home: Path) -> None:
    keys = home / "keys"
    keys.mkdir(mode=0o700, parents=True)
    (keys / "x.jwk").write_text("{}")
    (keys / "x.jwk").chmod(0o600)
    (line,) = failed(home, SERVICE)
    assert str(keys) in line


def test_an_address_that_cannot_be_had_is_told_in_one_line(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (line,) = failed(home, (*SERVICE[:-1], str(port)))
        with pytest.raises(UnavailableError, match="--port") as told:
            listen("127.0.0.1", port, None)
    assert line == told.value.message
    assert re.fullmatch(rf"The service cannot listen on 127\.0\.0\.1:{port}: .*in use.*", line)
    with pytest.raises(UnavailableError, match="--uds"):
        listen("127.0.0.1", 0, f"{home}/{'long' * 40}")


def test_each_invalid_setting_has_a_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {
        "KILN_COMPILE_MEMORY_MIB": "lots",
        "KILN_CONCURRENCY": "0",
        "KILN_LOG": "loud",
        "KILN_QUEUE": "x",
        "KILN_SHUTDOWN_NOTICE_S": "inf",
    }
    for name, value in wrong.items():
        monkeypatch.setenv(name, value)
    assert read_settings() is None
    lines = sorted(capsys.readouterr().err.splitlines())
    assert [line.partition(":")[0] for line in lines] == [*wrong]
    assert "debug, info" in lines[[*wrong].index("KILN_LOG")]
    monkeypatch.setenv("KILN_OIDC", "{nonsense")
    assert read_settings() is None
    assert capsys.readouterr().err.startswith("KILN_OIDC: It is not the JSON that it has to be")


def test_a_defect_shows_its_traceback(home: Path) -> None:
    told = "\n".join(failed(home, ("-c", DEFECT)))
    assert "Traceback" in told
    assert "ZeroDivisionError" in told


@contextmanager
def starting(home: Path) -> Generator[tuple[Process, int]]:
    """A service that has not started yet, and the process that compiles its first small graph, which stands still."""
    home.mkdir()
    with (home / "log").open("wb") as log:
        service = forked_services().start(*SERVICE[1:], cwd=Path.cwd(), env=environment_in(home), stderr=log.fileno())
    assert service.stdout is not None
    try:
        while not (found := trials(service.pid)):
            assert service.poll() is None
            time.sleep(0.005)
        os.kill(found[0], signal.SIGSTOP)
        yield service, found[0]
    finally:
        service.kill()
        service.wait(30)
        service.stdout.close()


def trials(service: int) -> list[int]:
    with suppress(FileNotFoundError):
        return [job for fork_server in children(service) for job in jobs(fork_server, "trial")]
    return []


def test_a_service_whose_first_small_graph_takes_long_starts_nevertheless(home: Path) -> None:
    with starting(home) as (service, trial):
        time.sleep(max(PATIENCE_S, LIMITS.deadline_s) + 0.5)
        assert service.poll() is None
        os.kill(trial, signal.SIGCONT)
        assert service.stdout is not None
        assert service.stdout.readline().startswith("tensorkiln is ready")


def test_a_check_that_keeps_a_service_from_starting_is_named_in_one_line(home: Path) -> None:
    with starting(home) as (service, trial):
        for number in (signal.SIGABRT, signal.SIGCONT):
            os.kill(trial, number)
        assert service.wait(120) == 1
        assert service.stdout is not None
        assert service.stdout.read() == ""
    *_, line = complaints((home / "log").read_text())
    assert "the check canary fails: a small graph is not compiled" in line
    assert line.count("cannot start") == 1
