"""Who only believes has the public halves, in a directory of their own, and never a private one."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from service.trust.keyring import Keyring
from tensorkiln.errors import UnavailableError
from tests.farm.members import Member, free_port
from tests.service.bodies import compile_body, encoded, graph
from tests.service.forked import forked_services
from tests.service.server import JSON
from tests.trust.conftest import Ran
from tests.trust.test_keys import files


def holds_secrets(directory: Path) -> bool:
    return any("d" in json.loads(path.read_text()) for path in files(directory))


def test_new_rotated_and_revoked_keys_are_copied_without_the_private_half(tmp_path: Path) -> None:
    private, public = tmp_path / "keys", tmp_path / "shown" / "keys"
    signing = Keyring(private, public_directory=public)

    first = signing.signer()
    assert Keyring(public).published() == Keyring(private).published()
    second = signing.rotate()
    assert Keyring(public).public().keys() == {first.kid, second.kid}
    signing.revoke(first.kid)
    assert Keyring(public).public().keys() == {second.kid}
    assert holds_secrets(private)
    assert not holds_secrets(public)
    assert {stat.S_IMODE(path.stat().st_mode) for path in files(public)} == {0o644}
    assert stat.S_IMODE((private / f"{second.kid}.jwk").stat().st_mode) == 0o600


def test_missing_public_keys_are_copied_when_a_worker_starts(tmp_path: Path) -> None:
    private, public = tmp_path / "keys", tmp_path / "shown"
    elsewhere = Keyring(private)
    first, second = elsewhere.signer(), elsewhere.rotate()
    Keyring(private, public_directory=public).publish()
    assert Keyring(public).public().keys() == {first.kid, second.kid}
    assert not holds_secrets(public)
    stamps = [path.stat().st_mtime_ns for path in files(public)]
    Keyring(private, public_directory=public).publish()
    assert [path.stat().st_mtime_ns for path in files(public)] == stamps
    elsewhere.revoke(first.kid)
    Keyring(private, public_directory=public).publish()
    assert Keyring(public).public().keys() == {second.kid}


def test_a_key_that_nobody_could_verify_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnavailableError, match="file"):
        Keyring(tmp_path / "keys", public_directory=tmp_path / "file" / "shown").signer()
    assert files(tmp_path / "keys") == []


def command(ran: Ran, home: Path, *arguments: str) -> None:
    done = ran("service.trust", *arguments, KILN_KEYS=str(home / "keys"), KILN_PUBLIC_KEYS=str(home / "shown"))
    assert done.returncode == 0, done.stderr


def test_the_command_line_copies_the_keys_of_the_settings_alone(ran: Ran, tmp_path: Path) -> None:
    command(ran, tmp_path, "rotate")
    (shown,) = files(tmp_path / "shown")
    command(ran, tmp_path, "--keys", str(tmp_path / "others"), "rotate")
    assert files(tmp_path / "shown") == [shown]
    command(ran, tmp_path, "revoke", shown.stem)
    assert Keyring(tmp_path / "shown").public() == {}


@pytest.mark.xdist_group("farm")
def test_a_service_of_a_farm_does_with_the_public_halves_alone(ran: Ran, tmp_path: Path) -> None:
    port = free_port()
    shown = tmp_path / "shown"
    shared = {"KILN_FARM": "1", "KILN_STORE": str(tmp_path / "store")}
    own = {"KILN_HOME": str(tmp_path / "service"), "KILN_KEYS": str(shown)}
    signs = {
        "KILN_HOME": str(tmp_path / "worker"),
        "KILN_CONCURRENCY": "1",
        "KILN_KEYS": str(tmp_path / "keys"),
        "KILN_PUBLIC_KEYS": str(shown),
    }
    service = Member("service", ["--port", str(port)], {**shared, **own}, tmp_path / "service.log", forked_services())
    worker = Member("service.worker", [], {**shared, **signs}, tmp_path / "worker.log", forked_services())

    def compiled(op: str) -> dict[str, Any]:
        url, body = f"http://127.0.0.1:{port}/compile", encoded(compile_body(graph(op)))
        answers = [httpx2.post(url, content=body, headers=JSON, timeout=120, verify=False) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
        statuses = [answer.json()["programs"][0]["cache"]["status"] for answer in answers]
        assert statuses == ["miss", "hit"]
        return answers[0].json()["signatures"][0]["record"]

    try:
        service.start()
        service.await_ready()
        worker.start()
        worker.await_ready()
        first = compiled("exp2")
        command(ran, tmp_path, "rotate")
        # The worker looks once a second: until then it signs with the key before.
        time.sleep(1.1)
        assert compiled("sin")["key"] != first["key"]
        told = httpx2.get(f"http://127.0.0.1:{port}/keys", timeout=60, verify=False).json()["keys"]
        assert {path.stem for path in files(shown)} == {key["kid"] for key in told}
        assert len(told) == 2
        assert {path.suffix for path in shown.iterdir()} == {".jwk"}
        assert not holds_secrets(shown)
        assert not (tmp_path / "service" / "keys").exists()
    finally:
        service.kill()
        worker.kill()
