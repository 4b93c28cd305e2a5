"""Starting, stopping and validation; a service that cannot start says why in one line, and a defect shows its place."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2
import pytest

from service.readiness.readiness import LIMITS, PATIENCE_S
from service.server.listen import listen
from service.settings import read_settings
from service.wire.body import MAX_TARGETS
from tensorkiln.dtypes import DType
from tensorkiln.errors import UnavailableError
from tensorkiln.nodes import NODE_KINDS
from tests.forked import Process
from tests.service.bodies import compile_body, encoded, graph
from tests.service.forked import forked_services
from tests.service.server import TIGHT, Server, await_end, children, jobs

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
    ("setting", "value", "reasons"),
    [
        ("KILN_STORE", "s4://bucket", ["KILN_STORE"]),
        ("KILN_STORE", "{home}/file/store", ["KILN_STORE", "Not a directory"]),
        ("KILN_KEYS", "{home}/file", ["KILN_KEYS", "cannot be written to"]),
        ("KILN_KEYS", "{home}/damaged", ["damaged/x.jwk"]),
        ("KILN_IDENTITY", "{home}/file", ["KILN_IDENTITY", "Not a directory"]),
        ("KILN_REQUIRE_ISOLATION", "external", ["KILN_REQUIRE_ISOLATION", "KILN_ISOLATION=bwrap"]),
        ("KILN_TRACING", "1", ["KILN_TRACING", "set OTEL_EXPORTER_OTLP_ENDPOINT"]),
    ],
)
def test_so_are_the_others_and_what_to_do(home: Path, setting: str, value: str, reasons: list[str]) -> None:
    (home / "damaged").mkdir(mode=0o700, parents=True)
    for path in (home / "file", home / "damaged" / "x.jwk"):
        path.write_text("{}")
        path.chmod(0o600)
    (line,) = failed(home, SERVICE, **{setting: value.replace("{home}", str(home))})
    assert [reason for reason in reasons if reason not in line] == []


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


def complaints(log: str) -> list[str]:
    """The lines of a log, less the one that a service on the loopback asks for no credential."""
    return [line for line in log.splitlines() if "no credential is required" not in line]


def test_capabilities_state_what_the_contract_lists(server: Server) -> None:
    stated = server.http.get("/capabilities").json()
    assert stated["node_kinds"] == list(NODE_KINDS)
    assert len(stated["node_kinds"]) == 45
    assert stated["dtypes"] == [str(dtype) for dtype in DType]
    assert {"cpu", "cpu:x86-64-v3", "cpu:aarch64"} <= set(stated["targets"])
    assert stated["limits"]["nodes"] == 50_000
    assert stated["limits"]["body_bytes"] == 64 << 20
    assert stated["limits"]["compile_deadline_s"] == TIGHT["compile_deadline_s"]
    assert stated["digest_function"] == "sha256"
    assert re.fullmatch(r"[0-9a-f]{64}", stated["build_id"])
    assert stated["versions"]["torch-mlir"]


def test_every_stated_target_compiles(server: Server) -> None:
    targets = server.http.get("/capabilities").json()["targets"]
    for begin in range(0, len(targets), MAX_TARGETS):
        some = targets[begin : begin + MAX_TARGETS]
        answer = server.compile(encoded(compile_body(graph("neg", rows=2), target=some)))
        assert answer.status_code == 200, answer.text
        assert len(answer.json()["programs"]) == len(some)


def test_a_validation_tells_types_and_digest(server: Server) -> None:
    wire = graph("exp2", symbol="batch", first_var=3)
    report = server.post("/validate", encoded({"graph": wire})).json()
    assert report["valid"] is True
    assert report["inputs"] == [{"var": 3, "dtype": "float32", "shape": [4, "batch"], "device": None}]
    assert [output["var"] for output in report["outputs"]] == [4, 5]
    assert report["symbols"] == [{"name": "batch", "min_val": 1, "max_val": 64}]
    assert (report["nodes"], report["live_nodes"]) == (3, 3)
    other = graph("exp2", name="other", symbol="m", first_var=30, reverse=True)
    assert server.post("/validate", encoded({"graph": other})).json()["digest"] == report["digest"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_ready_service_says_so_once_and_a_signal_ends_it(home: Path, number: signal.Signals, status: int) -> None:
    server = Server(home)
    fork_servers = server.fork_servers
    assert server.process.stdout is not None
    os.kill(server.pid, number)
    assert server.process.stdout.read() == ""
    assert server.stop() == status
    assert complaints(server.log()) == []
    assert len(fork_servers) == 2
    for pid in fork_servers:  # They go with their service, if not at once.
        await_end(pid)


def test_only_its_user_can_open_its_socket_which_goes_with_it(home: Path) -> None:
    home.mkdir()
    path = home / "s"
    environment = {**os.environ, "KILN_HOME": str(home)}
    for end, status, is_left in ((signal.SIGKILL, -signal.SIGKILL, True), (signal.SIGTERM, 0, False)):
        process = forked_services().start("service", "--uds", str(path), cwd=home, env=environment, stderr=2)
        assert process.stdout is not None
        with process.stdout:
            assert process.stdout.readline() == f"tensorkiln is ready on unix:{path}\n"
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            with httpx2.Client(transport=httpx2.HTTPTransport(uds=str(path), verify=False)) as client:
                assert client.get("http://kiln/healthz").status_code == 200
            process.send_signal(end)
            assert process.wait(30) == status
        assert path.exists() is is_left
