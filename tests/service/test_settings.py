"""A setting that is misspelt is told: it changes nothing, and nobody would notice. An empty directory is none."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError
from pydantic_settings import SettingsError

from service.identity.caller import Scope
from service.identity.keyring import Keyring
from service.server.listen import authenticator
from service.settings import Settings, misspelt
from service.store.location import open_store
from tensorkiln.settings import resolve_settings
from tests.service.bodies import compile_body, encoded
from tests.service.server import Server
from tests.snippets import ROOT

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
    assert unset.identity_directory == user / ".cache" / "kiln" / "identity"


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
    assert settings.identity_directory == user / "identity"
    assert settings.keys_directory == user / "keys"
    assert settings.public_keys == user / "public_keys"
    open_store(settings.store_location)
    assert (user / "store").is_dir()


@pytest.mark.parametrize("name", ["home", "identity", "keys", "public_keys"])
def test_a_missing_home_is_refused_by_its_setting(user: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"KILN_{name.upper()}", "~nobody-of-this-name/kiln")
    with pytest.raises(ValidationError, match=name):
        Settings()
