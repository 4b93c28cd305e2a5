"""What a program that uses the SDK hears of requests that are sent again: nothing, unless it listens."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tensorkiln import Client
from tests.sdk.conftest import Connect
from tests.sdk.scripted import ScriptedServer
from tests.sdk.test_jobs import told
from tests.service.bodies import graph

UNREACHABLE = """
import sys
from tensorkiln import Client
from tensorkiln.errors import UnavailableError
try:
    Client("http://127.0.0.1:1", cache_dir=sys.argv[1]).capabilities()
except UnavailableError:
    print("unavailable")
"""


def test_a_program_that_listens_to_nothing_hears_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", UNREACHABLE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("unavailable\n", "")


def test_each_further_attempt_is_logged(
    scripted: ScriptedServer, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    scripted.answers_with(cut=True)
    scripted.refuses_with(503, "infra.unavailable", "restarting", retry_after="0")
    scripted.answers_with()
    with caplog.at_level(logging.INFO, "tensorkiln"), capture_logs() as structured:
        connect(scripted.url).capabilities()
    records = [record for record in caplog.records if record.name == "tensorkiln"]
    assert [record.levelno for record in records] == [logging.INFO] * 2
    assert "GET /capabilities" in records[0].getMessage()
    assert "restarting" in records[1].getMessage()
    assert structured == []


def test_a_stream_that_is_opened_again_is_logged(
    scripted: ScriptedServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scripted.answers_with(told(), status=202)
    scripted.tells([("1.1", "queued", {})])
    scripted.tells([("1.2", "done", {"state": "done"})])
    with caplog.at_level(logging.INFO, "tensorkiln"), Client(scripted.url, cache_dir=tmp_path) as client:
        list(client.submit(graph()).events())
    (message,) = [record.getMessage() for record in caplog.records if record.name == "tensorkiln"]
    assert "/events" in message
