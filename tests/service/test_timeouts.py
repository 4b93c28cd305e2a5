"""Every time-out is longer than the one inside it, and is the one that is used."""

from __future__ import annotations

import asyncio
import re
from dataclasses import astuple
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.routes.compile import in_time
from service.settings import Settings
from service.store.attempts import MAX_CRASHES
from service.timeouts import ATTEMPTS, OVERDUE_S
from tensorkiln import settings as client_settings
from tensorkiln.errors import UnavailableError
from tensorkiln.transport import QUIET_S
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import TIGHT, Server
from tests.timeouts import Timeouts, stop_s

ROOT = Path(__file__).parents[2]
SSE_COMMENT_S = 15.0
"""An event stream says so often that it lives: FastAPI's, and what docs/http.md states."""


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KILN_COMPILE_DEADLINE_S", "KILN_QUEUE_AGE_S", "KILN_SHUTDOWN_GRACE_S"):
        monkeypatch.delenv(name, raising=False)


@given(st.floats(1, 3600), st.floats(0.001, 86_400))
def test_the_time_outs_rise_whatever_the_deadline_and_the_queue(compile_s: float, queue_s: float) -> None:
    timeouts = Timeouts.of(compile_s, queue_s)
    assert all(lower < upper for lower, upper in pairwise(astuple(timeouts)))
    # A compile that began as late as it may, crashes late, and is begun again, ends before its answer is given up.
    assert queue_s + ATTEMPTS * (compile_s + OVERDUE_S) < timeouts.answer_s


def test_timeouts_of_proxies_and_clients_fit_the_defaults() -> None:
    settings = Settings()
    timeouts = Timeouts.of(settings.compile_deadline_s, settings.queue_age_s)
    assert timeouts.client_s <= client_settings.TIMEOUT_S
    assert timeouts.lets_finish(settings.grace_s)
    assert SSE_COMMENT_S * 2 < QUIET_S
    assert ATTEMPTS == MAX_CRASHES


def test_the_documents_state_the_time_outs() -> None:
    settings = Settings()
    rows = re.findall(r"^\| .* \| .* \| (\d+) s \|$", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE)
    assert [float(row) for row in rows] == list(astuple(Timeouts.of(settings.compile_deadline_s, settings.queue_age_s)))


def test_no_answer_is_held_back_longer_than_a_proxy_waits(server: Server) -> None:
    answer = server.post("/compile", encoded(compile_body(graph("exp2", rows=61))), Prefer="wait=9999")
    longest = Settings(compile_deadline_s=TIGHT["compile_deadline_s"]).answer_s
    assert answer.headers["Preference-Applied"] == f"wait={longest:g}"


async def test_the_deadline_is_reported_by_the_service() -> None:
    async def never() -> bytes:
        await asyncio.Event().wait()
        return b""

    async def soon() -> bytes:
        return b"answer"

    assert await in_time(soon(), 5.0) == b"answer"
    with pytest.raises(UnavailableError, match="respond-async") as caught:
        await in_time(never(), 0.01)
    assert caught.value.details == {"answer_s": 0.01}


@given(st.floats(1, 3600), st.floats(0.001, 86_400))
def test_a_shutdown_waits_by_default_for_the_longest_answer(compile_s: float, queue_s: float) -> None:
    settings = Settings(compile_deadline_s=compile_s, queue_age_s=queue_s)
    assert settings.grace_s >= settings.answer_s
    assert settings.grace_s < stop_s(settings.shutdown_notice_s, settings.grace_s)


@pytest.mark.xdist_group("pair")
def test_a_grace_below_an_answer_is_told_at_start(patient: Server, unusual: Server) -> None:
    """The one has no grace of its own, the other 199 s: a second less than an answer may take."""
    assert ("a shutdown would end them" in patient.log()) is False
    assert ("a shutdown would end them" in unusual.log()) is True


def test_the_documents_state_how_long_a_service_takes_to_stop() -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    assert f"the longest answer, {Settings().grace_s:g} |" in text
    assert f"`preStop` pause): {stop_s(0, Settings().grace_s):g} s by default" in text
