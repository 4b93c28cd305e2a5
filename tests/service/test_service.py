"""Starting, stopping, health, capabilities, validation."""

from __future__ import annotations

import os
import re
import signal
import stat
from pathlib import Path

import httpx2
import pytest

from service.wire.body import MAX_TARGETS
from tensorkiln.dtypes import DType
from tensorkiln.nodes import NODE_KINDS
from tests.service.bodies import compile_body, encoded, graph
from tests.service.forked import forked_services
from tests.service.server import TIGHT, Server, await_end


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
