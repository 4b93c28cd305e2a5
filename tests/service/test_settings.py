"""A misspelt setting is told, an empty directory is none, and every time-out is longer than the one inside it."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from dataclasses import astuple
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic_settings import SettingsError

from service.identity.caller import Scope
from service.identity.keyring import Keyring
from service.routes.compile import in_time
from service.server.listen import authenticator
from service.settings import Settings, misspelt
from service.store.attempts import MAX_CRASHES
from service.store.location import open_store
from service.timeouts import ATTEMPTS, OVERDUE_S
from tensorkiln import settings as client_settings
from tensorkiln.errors import UnavailableError
from tensorkiln.settings import resolve_settings
from tensorkiln.transport import QUIET_S
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import TIGHT, Server
from tests.snippets import ROOT
from tests.timeouts import Timeouts, stop_s

SOURCES = ("client", "service", "docs", "docker", "tests")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("KILN_QUEU", "KILN_QUEUE"),
        ("KILN_CONCURENCY", "KILN_CONCURRENCY"),
        ("KILN_COMPILE_DEADLINE", "KILN_COMPILE_DEADLINE_S"),
        ("kiln_stores", "KILN_STORE"),
        ("KILN_URLS", "KILN_URL"),
    ],
)
def test_the_nearest_setting_is_named(name: str, meant: str) -> None:
    assert misspelt({name: "5", "PATH": "", "KILN_QUEUE": "7"}) == {name: meant}


def test_foreign_variables_are_not_in_error_messages() -> None:
    cluster = ("KILN_SERVICE_HOST", "KILN_SERVICE_PORT", "KILN_PORT", "KILN_PORT_8080_TCP_ADDR", "kiln_queue")
    assert misspelt(dict.fromkeys(cluster, "")) == {}


def test_no_variable_that_is_used_anywhere_here_is_called_misspelt() -> None:
    files = [
        path for folder in SOURCES for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md", ".yaml")
    ]
    assert len(files) > 500
    used = {
        name
        for path in files
        if path != Path(__file__)
        for name in re.findall(r"\bKILN_\w*[A-Z]\b", path.read_text("utf-8"))
    }
    assert "KILN_QUEUE" in used
    # The page on the settings shows what is said of one.
    assert misspelt(dict.fromkeys(used, "")).keys() <= {"KILN_QUEU"}


@pytest.mark.xdist_group("pair")
def test_a_service_says_so_when_it_starts_and_shows_no_value(tmp_path: Path, unusual: Server) -> None:
    assert unusual.log().count("KILN_QUEU is not a setting; is KILN_QUEUE meant?") == 1
    assert "hidden" not in unusual.log()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
    listed = subprocess.run(
        [sys.executable, "-W", "error", "-m", "service.trust", "list"],
        env={**clean, "KILN_HOME": str(tmp_path / "other"), "KILN_QUEU": "5"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (listed.returncode, "KILN_QUEU" in listed.stdout) == (0, False)


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home directory of a user who has set nothing."""
    for name in [*os.environ]:
        if name.startswith("KILN_") or name == "XDG_CACHE_HOME":
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_an_empty_directory_is_one_that_is_not_set(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unset = Settings()
    for name in ("HOME", "STORE", "KEYS", "PUBLIC_KEYS", "IDENTITY"):
        monkeypatch.setenv(f"KILN_{name}", "")
    assert Settings() == unset
    assert unset.identity == user / ".cache" / "kiln" / "identity"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "") for name in ("require_isolation", "oidc", "concurrency")),
        # No kernel takes these, and nothing compiles within that.
        *((f"compile_{limit}_mib", "99999999999999") for limit in ("memory", "file", "output")),
        ("compile_deadline_s", "0.001"),
    ],
)
def test_empty_requirements_and_odd_limits_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"KILN_{name.upper()}", value)
    with pytest.raises((ValidationError, SettingsError), match=name):
        Settings()


def test_the_least_and_the_greatest_limits_compile(tmp_path: Path) -> None:
    names = ("compile_memory_mib", "compile_file_mib", "compile_output_mib")
    for place, limits in (("least", (64, 1, 1)), ("greatest", (1 << 24,) * 3)):
        with Server(tmp_path / place, **dict(zip(names, limits, strict=True))) as server:
            assert server.compile(encoded(compile_body())).status_code == 200, place


def test_an_empty_directory_of_keys_does_not_switch_credentials_off(tmp_path: Path) -> None:
    Keyring(tmp_path / "identity").make("first", "acme", {Scope.COMPILE}, None)
    assert authenticator(Settings(home=tmp_path, identity="")).asks  # type: ignore[arg-type]


def test_a_tilde_is_the_home_directory(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "IDENTITY", "KEYS", "PUBLIC_KEYS", "STORE"):
        monkeypatch.setenv(f"KILN_{name}", f"~/{name.lower()}")
    settings = Settings()
    assert settings.home == resolve_settings().home == user / "home"
    assert settings.identity == user / "identity"
    assert settings.keys == user / "keys"
    assert settings.public_keys == user / "public_keys"
    open_store(settings.store)
    assert (user / "store").is_dir()


@pytest.mark.parametrize("name", ["home", "identity", "keys", "public_keys"])
def test_a_missing_home_is_refused_by_its_setting(user: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"KILN_{name.upper()}", "~nobody-of-this-name/kiln")
    with pytest.raises(ValidationError, match=name):
        Settings()


SSE_COMMENT_S = 15.0
"""An event stream says so often that it lives: FastAPI's, and what docs/http.md states."""


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KILN_COMPILE_DEADLINE_S", "KILN_QUEUE_AGE_S", "KILN_SHUTDOWN_GRACE_S"):
        monkeypatch.delenv(name, raising=False)


@given(st.floats(1, 3600), st.floats(0.001, 86_400))
def test_the_time_outs_rise_up_to_that_of_a_shutdown_whatever_the_deadline_and_the_queue(
    compile_s: float, queue_s: float
) -> None:
    timeouts = Timeouts.of(compile_s, queue_s)
    assert all(lower < upper for lower, upper in pairwise(astuple(timeouts)))
    # A compile that began as late as it may, crashes late, and is begun again, ends before its answer is given up.
    assert queue_s + ATTEMPTS * (compile_s + OVERDUE_S) < timeouts.answer_s
    settings = Settings(compile_deadline_s=compile_s, queue_age_s=queue_s)
    assert settings.answer_s <= settings.shutdown_grace_s < stop_s(0, settings.shutdown_grace_s)


def test_timeouts_of_proxies_and_clients_fit_the_defaults() -> None:
    settings = Settings()
    timeouts = Timeouts.of(settings.compile_deadline_s, settings.queue_age_s)
    assert timeouts.client_s <= client_settings.TIMEOUT_S
    assert timeouts.lets_finish(settings.shutdown_grace_s)
    assert SSE_COMMENT_S * 2 < QUIET_S
    assert ATTEMPTS == MAX_CRASHES


def test_the_documents_state_the_time_outs_and_how_long_a_service_takes_to_stop() -> None:
    settings, text = Settings(), (ROOT / "docs" / "operations.md").read_text()
    rows = re.findall(r"^\| .* \| .* \| (\d+) s \|$", text, re.MULTILINE)
    assert [float(row) for row in rows] == list(astuple(Timeouts.of(settings.compile_deadline_s, settings.queue_age_s)))
    assert f"the longest answer, {Settings().shutdown_grace_s:g} |" in text
    assert f"`preStop` pause): {stop_s(0, Settings().shutdown_grace_s):g} s by default" in text


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


@pytest.mark.xdist_group("pair")
def test_a_grace_below_an_answer_is_told_at_start(patient: Server, unusual: Server) -> None:
    """The one has no grace of its own, the other 199 s: a second less than an answer may take."""
    assert ("a shutdown would end them" in patient.log()) is False
    assert ("a shutdown would end them" in unusual.log()) is True
