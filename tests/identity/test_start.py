"""Whom a service serves that has no keys, and the commands that make some."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from service.identity.__main__ import main
from service.identity.authenticator import is_loopback
from service.identity.keyring import Keyring
from service.identity.scopes import Scope
from service.server.authentication import authenticator, require_private_address
from service.settings import Settings
from tensorkiln.errors import UnavailableError
from tests.identity.guarded import GUARDED, UNGUARDED, Guarded, refusal
from tests.service.bodies import compile_body, encoded
from tests.service.server import Server


def run(module: str, *arguments: str, home: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
    variables = {f"KILN_{name.upper()}": value for name, value in settings.items()}
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", module, *arguments],
        env={**clean, "KILN_HOME": str(home), **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_without_keys_no_address_but_the_loopback_is_taken(home: Path, host: str) -> None:
    with pytest.raises(UnavailableError, match=r"python -m tensorkiln_server identity make"):
        require_private_address(Settings(home=home), host, None)


def test_a_service_that_may_not_take_its_address_says_how_to_make_a_key(home: Path) -> None:
    refused = run("service", "--host", "0.0.0.0", "--port", "0", home=home)
    assert refused.returncode == 1
    assert "python -m tensorkiln_server identity make" in refused.stderr
    assert refused.stdout == ""


def test_authentication_that_is_off_is_for_the_loopback_too(home: Path) -> None:
    Keyring(home / "identity").make("", "acme", [Scope.COMPILE], None)
    refused = run("service", "--host", "0.0.0.0", "--port", "0", home=home, auth="off")
    assert refused.returncode == 1
    assert "KILN_AUTH=off" in refused.stderr


def test_settings_that_cannot_be_used_are_named_at_the_start(home: Path) -> None:
    refused = run("service", "--port", "0", home=home, oidc='[{"name": "x"}]')
    assert refused.returncode == 1
    assert "KILN_OIDC" in refused.stderr


@UNGUARDED
def test_a_service_that_serves_everybody_says_so(unguarded: Server) -> None:
    assert "no credential is required" in unguarded.log()
    assert unguarded.http.get("/openapi.json").status_code == 200
    assert unguarded.http.get("/openapi.json", headers={"Authorization": "Bearer whatever"}).status_code == 200


@UNGUARDED
def test_a_service_without_keys_does_not_serve_what_a_proxy_brings(unguarded: Server) -> None:
    brought = unguarded.http.get("/openapi.json", headers={"X-Forwarded-For": "192.0.2.1"})
    assert refusal(brought) == (401, "auth.missing")


def test_the_first_key_closes_a_running_service(home: Path) -> None:
    with Server(home) as server:
        assert server.http.get("/openapi.json").status_code == 200
        key = Keyring(home / "identity").make("", "acme", [Scope.COMPILE], None).text
        assert refusal(server.http.get("/openapi.json")) == (401, "auth.missing")
        assert server.http.get("/openapi.json", headers={"Authorization": f"bearer {key}"}).status_code == 200
        (home / "identity" / "register.json").unlink()
        assert refusal(server.http.get("/openapi.json")) == (401, "auth.missing")


@GUARDED
def test_a_service_with_a_key_may_be_reached_from_elsewhere(guarded: Guarded) -> None:
    assert "no credential is required" not in guarded.log()
    settings = Settings(home=guarded.home)
    assert authenticator(settings).asks


@UNGUARDED
def test_with_authentication_off_keys_are_not_asked_for(switched_off: Guarded) -> None:
    assert switched_off.http.get("/openapi.json").status_code == 200


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("localhost", True),
        ("::ffff:127.0.0.1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.example.org", False),
        ("", False),
    ],
)
def test_the_loopback_is_known(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@GUARDED
def test_a_key_is_made_listed_used_and_revoked_by_command(guarded: Guarded) -> None:
    home = guarded.home
    made = run("service.identity", "make", "--tenant", "acme", "--name", "ci", "--days", "30", home=home)
    assert made.returncode == 0, made.stderr
    key = made.stdout.strip()
    assert re.fullmatch(r"kiln_[0-9a-z]{10}_[0-9A-Za-z]{49}", key)
    assert "once" in made.stderr
    listed = run("service.identity", "list", home=home).stdout
    assert re.search(rf"^{key.split('_')[1]}  {key[-4:]} +acme +good ", listed, re.MULTILINE)
    assert key not in listed
    assert guarded.send(key, "POST", "/compile", encoded(compile_body())).status_code == 200
    revoked = run("service.identity", "revoke", key.split("_")[1], home=home)
    assert (revoked.returncode, revoked.stdout) == (0, f"The key {key.split('_')[1]} of acme is revoked.\n")
    assert refusal(guarded.send(key, "POST", "/compile", b"{}")) == (401, "auth.invalid")
    listed = run("service.identity", "list", home=home).stdout
    assert re.search(rf"^{key.split('_')[1]}  {key[-4:]} +acme +revoked ", listed, re.MULTILINE)


def test_a_tenant_is_changed_field_by_field(home: Path) -> None:
    assert "1       own    default    default" in run("service.identity", "tenant", "acme", home=home).stdout
    run("service.identity", "tenant", "acme", "--weight", "2.5", "--cpu-s", "30", home=home)
    changed = run("service.identity", "tenant", "acme", "--shared", "--in-flight", "0", home=home).stdout
    assert re.search(r"acme +2\.5 +shared +0 +30", changed), changed


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["make"], 2),
        (["make", "--tenant", "acme", "--scope", "everything"], 2),
        (["make", "--tenant", "no spaces"], 1),
        (["make", "--tenant", "acme", "--days", "0"], 2),
        (["revoke", "unknown"], 1),
        (["tenant", "acme", "--weight", "-1"], 2),
        (["tenant", "acme", "--in-flight", "-1"], 2),
    ],
)
def test_a_command_that_cannot_be_done_says_why(
    home: Path,
    arguments: list[str],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KILN_HOME", str(home))
    try:
        ended_with = main(arguments)
    except SystemExit as end:
        ended_with = end.code
    told = capsys.readouterr()
    assert (ended_with, told.out) == (status, "")
    assert told.err


@pytest.mark.parametrize(("arguments", "status"), [(["make"], 2), (["make", "--tenant", "no spaces"], 1)])
def test_a_command_that_was_refused_ends_without_a_traceback(home: Path, arguments: list[str], status: int) -> None:
    done = run("service.identity", *arguments, home=home)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr
    assert "Traceback" not in done.stderr


@UNGUARDED
def test_the_loopback_is_served_by_its_address_alone(unguarded: Server) -> None:
    assert httpx2.get(f"{unguarded.url}/readyz").status_code == 200
