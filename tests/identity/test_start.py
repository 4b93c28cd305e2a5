"""Whom a service serves that has no keys, and the commands that make some."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from service.identity.__main__ import main
from service.identity.authenticator import is_loopback
from service.identity.caller import Scope
from service.identity.keyring import Keyring
from service.server.listen import authenticator, require_private_address
from service.settings import Settings
from tensorkiln.errors import UnavailableError
from tests.identity.guarded import GUARDED, UNGUARDED, Guarded, refusal
from tests.service.bodies import compile_body, encoded
from tests.service.forked import forked_services
from tests.service.server import Server


@pytest.fixture
def command(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What `python -m tensorkiln_server identity` prints in this home, or another."""

    def run(*arguments: str, where: Path = home) -> str:
        monkeypatch.setenv("KILN_HOME", str(where))
        assert main(arguments) == 0
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_without_keys_no_address_but_the_loopback_is_taken(home: Path, host: str) -> None:
    with pytest.raises(UnavailableError, match=r"python -m tensorkiln_server identity make"):
        require_private_address(Settings(home=home), host, None)


def test_a_service_that_may_not_take_its_address_does_not_start(home: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
    environment = {**clean, "KILN_HOME": str(home)}
    refused = forked_services().run("service", "--host", "0.0.0.0", "--port", "0", cwd=Path.cwd(), env=environment)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "python -m tensorkiln_server identity make" in refused.stderr


def test_authentication_that_is_off_is_for_the_loopback_too(home: Path) -> None:
    Keyring(home / "identity").make("", "acme", [Scope.COMPILE], None)
    with pytest.raises(UnavailableError, match="KILN_AUTH=off"):
        require_private_address(Settings(home=home, auth="off"), "0.0.0.0", None)


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
def test_a_key_is_made_listed_used_and_revoked_by_command(guarded: Guarded, command: Callable[..., str]) -> None:
    home = guarded.home
    key = command("make", "--tenant", "acme", "--name", "ci", "--days", "30", where=home).strip()
    assert re.fullmatch(r"kiln_[0-9a-z]{10}_[0-9A-Za-z]{49}", key)
    identifier = key.split("_")[1]
    listed = command("list", where=home)
    assert re.search(rf"^{identifier}  {key[-4:]} +acme +good ", listed, re.MULTILINE)
    assert key not in listed
    assert guarded.send(key, "POST", "/compile", encoded(compile_body())).status_code == 200
    assert command("revoke", identifier, where=home) == f"The key {identifier} of acme is revoked.\n"
    assert refusal(guarded.send(key, "POST", "/compile", b"{}")) == (401, "auth.invalid")
    assert re.search(rf"^{identifier}  {key[-4:]} +acme +revoked ", command("list", where=home), re.MULTILINE)


def test_a_tenant_is_changed_field_by_field(command: Callable[..., str]) -> None:
    assert "1       own    default    default" in command("tenant", "acme")
    command("tenant", "acme", "--weight", "2.5", "--cpu-s", "30")
    assert re.search(r"acme +2\.5 +shared +0 +30", command("tenant", "acme", "--shared", "--in-flight", "0"))


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
