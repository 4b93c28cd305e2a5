"""Requests are sent again where that can help, end by a typed error, and name an environment that cannot be used."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tensorkiln import AsyncClient, Client
from tensorkiln.errors import LostWorkerError, RateLimitedError, RequestError, TensorkilnError, UnavailableError
from tensorkiln.retries import ATTEMPTS, BACKOFF_INITIAL_S
from tests.sdk.conftest import Connect, Kiln, one_line
from tests.sdk.scripted import ScriptedServer
from tests.sdk.test_doctor import Doctor, doctor
from tests.sdk.test_jobs import told
from tests.service.bodies import graph

Ask = Callable[..., Any]


@pytest.fixture
def ask(connect: Connect, scripted: ScriptedServer) -> Ask:
    return lambda **settings: connect(scripted.url, **settings).capabilities()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that would be waited before each further attempt."""
    seconds: list[float] = []

    sleep = asyncio.sleep

    def noting(wait_s: float) -> Coroutine[Any, Any, None]:
        seconds.append(wait_s)
        return sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noting)
    return seconds


@pytest.mark.usefixtures("waits")
@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_answer_is_tried_again(ask: Ask, scripted: ScriptedServer, status: int) -> None:
    scripted.answers_with(b"busy", status=status)
    scripted.answers_with(b'{"a": 1}')
    assert ask() == {"a": 1}
    assert len(scripted.requests) == 2


@pytest.mark.parametrize("status", [400, 404, 413, 422, 500, 501])
def test_any_other_status_is_final(ask: Ask, scripted: ScriptedServer, status: int) -> None:
    scripted.answers_with(b"no", status=status)
    with pytest.raises(TensorkilnError):
        ask()
    assert len(scripted.requests) == 1


@pytest.mark.usefixtures("waits")
def test_a_busy_service_is_given_up_after_five_attempts_with_its_own_error(ask: Ask, scripted: ScriptedServer) -> None:
    scripted.refuses_with(503, "infra.lost_worker", "the worker went away", retryable=True)
    with pytest.raises(LostWorkerError, match="the worker went away"):
        ask()
    assert len(scripted.requests) == 5


@pytest.mark.parametrize("stated", [{"retryable": False}, {"retry_after": "3600"}], ids=str)
def test_permanent_errors_and_late_retries_are_not_retried(
    ask: Ask, scripted: ScriptedServer, waits: list[float], stated: dict[str, Any]
) -> None:
    scripted.refuses_with(503, "infra.unavailable", "draining", **stated)
    with pytest.raises(UnavailableError, match="draining"):
        ask(timeout_s=10)
    assert (len(scripted.requests), waits) == (1, [])


@pytest.mark.parametrize("is_date", [False, True])
def test_retry_after_is_waited_for(ask: Ask, scripted: ScriptedServer, waits: list[float], is_date: bool) -> None:
    at = datetime.now(UTC) + timedelta(seconds=61)
    stated = format_datetime(at, usegmt=True) if is_date else "60"
    scripted.refuses_with(503, "infra.unavailable", "draining", retry_after=stated)
    scripted.answers_with()
    assert ask(timeout_s=90) == {}
    (waited,) = waits
    assert (50 if is_date else 60) <= waited <= (61 if is_date else 60) + BACKOFF_INITIAL_S


@pytest.mark.usefixtures("waits")
def test_an_unreachable_service_is_named(connect: Connect) -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))  # nobody else listens on it meanwhile
        port = unheard.getsockname()[1]
        with pytest.raises(UnavailableError, match=f"127.0.0.1:{port} cannot be reached for GET /capabilities"):
            connect(f"http://127.0.0.1:{port}").capabilities()


def test_an_answer_of_something_that_is_not_the_service_is_quoted(ask: Ask, scripted: ScriptedServer) -> None:
    scripted.answers_with(b"<html>\n<h1>Forbidden</h1>", status=403, headers={"Content-Type": "text/html"})
    with pytest.raises(UnavailableError, match=r"answered 403, .*<h1>Forbidden</h1>"):
        ask()


def test_tasks_share_one_client_and_so_do_loops_one_after_the_other(scripted: ScriptedServer, tmp_path: Path) -> None:
    # Connections that are kept would belong to a loop that is gone.
    scripted.answers_with(headers={"Connection": "close"})
    client = AsyncClient(scripted.url, cache_dir=tmp_path)

    async def several() -> None:
        assert await asyncio.gather(*(client.capabilities() for _ in range(16))) == [{}] * 16

    asyncio.run(several())
    asyncio.run(several())


@pytest.mark.usefixtures("waits")
def test_a_service_that_says_when_to_come_again_is_asked_until_the_deadline(ask: Ask, scripted: ScriptedServer) -> None:
    for _ in range(ATTEMPTS + 2):
        scripted.refuses_with(503, "infra.unavailable", "busy", retry_after="0")
    scripted.answers_with()
    assert ask() == {}
    assert len(scripted.requests) == ATTEMPTS + 3


def test_a_service_that_stays_busy_is_given_up_at_the_deadline(ask: Ask, scripted: ScriptedServer) -> None:
    scripted.refuses_with(429, "rate.limited", "enough", retry_after="1")
    with pytest.raises(RateLimitedError, match="enough"):
        ask(timeout_s=2.5)
    assert len(scripted.requests) == 2


UNREACHABLE = """
import sys
from tensorkiln import Client
from tensorkiln.errors import UnavailableError
try:
    Client("http://127.0.0.1:1", timeout_s=1, cache_dir=sys.argv[1]).capabilities()
except UnavailableError:
    print("unavailable")
"""


def test_a_program_that_listens_to_nothing_hears_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", UNREACHABLE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("unavailable\n", "")


def test_each_further_attempt_is_logged(scripted: ScriptedServer, ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    scripted.answers_with(cut=True)
    scripted.refuses_with(503, "infra.unavailable", "restarting", retry_after="0")
    scripted.answers_with()
    with caplog.at_level(logging.INFO, "tensorkiln"), capture_logs() as structured:
        ask()
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


__all__ = ["doctor"]

BROKEN = [
    ("ALL_PROXY", "socks5://user:secret@host:1", "needs the package socksio"),
    ("HTTP_PROXY", "ftp://user:secret@host:1", "URL of a proxy"),
    ("https_proxy", "http://user:secret@[::1", "URL of a proxy"),
    ("HTTP_PROXY", "http://user:secret@host:abc", "URL of a proxy"),
    ("SSL_CERT_FILE", "/nowhere/secret", "certificates"),
    ("SSLKEYLOGFILE", "/nowhere/secret", "certificates"),
]


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.upper().endswith("_PROXY") or name.startswith("SSL"):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(("variable", "value", "why"), BROKEN)
def test_a_client_names_the_variable_and_not_its_value(
    variable: str, value: str, why: str, tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    if variable == "SSLKEYLOGFILE":
        # Without a file of certificates httpx2 makes a context that logs no keys.
        monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    with pytest.raises(RequestError, match=f"environment variables .*{variable}.*{why}.*unset them") as error:
        connect("https://127.0.0.1:1").capabilities()
    assert "secret" not in error.value.message


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:1", "http://:80"])
def test_a_missing_proxy_is_no_traceback(proxy: str, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)
    with pytest.raises(TensorkilnError) as error:
        connect("http://service.invalid", timeout_s=0.5).capabilities()
    assert isinstance(error.value, RequestError | UnavailableError)


def test_only_tls_needs_certificates(scripted: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/secret")
    scripted.answers_with()
    with Client(scripted.url, cache_dir=tmp_path) as client:
        assert client.capabilities() == {}
    monkeypatch.setenv("HTTP_PROXY", "HTTPS://127.0.0.1:1")
    with Client(scripted.url, cache_dir=tmp_path) as client, pytest.raises(RequestError, match="certificates"):
        client.capabilities()
    assert len(scripted.received) == 1


@pytest.mark.usefixtures("embedding")
def test_an_embedded_service_needs_none_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value, _ in BROKEN[1:5]:
        monkeypatch.setenv(variable, value)
    with Client("", cache_dir=tmp_path) as client:
        assert client.capabilities()["targets"]


@pytest.mark.parametrize(("variable", "value", "why"), BROKEN[:5])
def test_the_doctor_has_a_line_for_it(doctor: Doctor, variable: str, value: str, why: str) -> None:
    status, parts = doctor(KILN_URL="http://127.0.0.1:1", **{variable: value})
    assert (status, parts["environment"]["status"]) == (1, "fail")
    assert variable in parts["environment"]["found"]
    assert why in parts["environment"]["found"]
    assert "secret" not in json.dumps(parts["environment"])


def test_a_command_says_it_in_a_line(kiln: Kiln, tmp_path: Path) -> None:
    (tmp_path / "graph.json").write_text("{}")
    done = one_line(kiln("compile", "graph.json", "--url", "http://127.0.0.1:1", ALL_PROXY="socks5://host:1"), 2)
    said = "error[request.invalid]: No connection can be made with the environment variables ALL_PROXY"
    assert done.startswith(said)
