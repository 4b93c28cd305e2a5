"""Which keys a client goes on to believe, after those that a service showed at first use."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from threading import Event, Thread, current_thread

import pytest

from service.trust.keyring import LIFETIME_S, OVERLAP_S, KeyFile, Keyring
from tensorkiln.errors import UntrustedArtifactError
from tensorkiln.trust.keys import KeySet, PublicKey
from tensorkiln.trust.service_keys import REFRESH_S, KeptKeys, ServiceKeys
from tensorkiln.trust.verify import CLOCK_SKEW_S
from tests.clocks import HandClock, by

DAY_S = 86_400


class Scene:
    """A client of a service with a `keyring`, a clock that both have, and what is `offered` in place of its keys."""

    def __init__(self, folder: Path) -> None:
        self.clock = HandClock(time.time())
        self.folder = folder
        self.keyring = by(self.clock, Keyring(folder / "keys"))
        self.offered: KeySet | None = None

    def client(self) -> ServiceKeys:
        """The client, as if its program had begun again."""

        async def fetch() -> bytes:
            return (self.offered or self.keyring.published()).model_dump_json(exclude_none=True).encode()

        return ServiceKeys("https://kiln.example", fetch, self.folder / "config", clock=self.clock.time)

    def believes(self, kid: str) -> bool:
        """Whether a new client of the same user believes this key, after it has asked."""
        try:
            return kid in asyncio.run(self.client().look_up(kid))
        except UntrustedArtifactError:
            return False

    def is_fooled(self, stolen: KeyFile, nbf: int) -> bool:
        """Whether a new client believes a successor of that key which begins then, shown in place of the true keys."""
        successor = followed(stolen, nbf)
        self.offered = KeySet(keys=(successor, stolen.public))
        return self.believes(successor.kid)

    def ask(self) -> None:
        """Have a client ask, because it has not for a time."""
        self.clock.at += REFRESH_S + 1
        assert self.believes(next(iter(self.client().known())))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path)
    assert scene.believes(scene.keyring.signer().kid)
    return scene


def followed(by: KeyFile, nbf: int) -> PublicKey:
    """A successor that whoever has a private key can make, from whenever they like."""
    return KeyFile.fresh(nbf, by.nbf + 2 * LIFETIME_S).endorsed_by(by).public


@pytest.mark.parametrize("late_s", [0, 1, DAY_S, -CLOCK_SKEW_S - REFRESH_S])
def test_a_revoked_key_vouches_for_nobody_whatever_date_they_state(scene: Scene, late_s: int) -> None:
    stolen = scene.keyring.signer()
    scene.clock.at += DAY_S
    revoked = scene.keyring.revoke(stolen.kid)
    scene.clock.at += late_s
    scene.ask()
    assert not any(scene.is_fooled(stolen, nbf) for nbf in (stolen.nbf, revoked.exp - 1, revoked.exp))


def test_a_client_hears_of_a_revocation_from_another_of_the_same_user(scene: Scene) -> None:
    stolen = scene.keyring.signer()
    long_running = scene.client()
    asyncio.run(long_running.look_up(stolen.kid))
    scene.keyring.revoke(stolen.kid)
    scene.ask()
    successor = followed(stolen, stolen.nbf)
    scene.offered = KeySet(keys=(successor, stolen.public))
    with pytest.raises(UntrustedArtifactError):
        asyncio.run(long_running.look_up(successor.kid))
    assert not scene.believes(successor.kid)


def test_a_key_that_had_ended_when_its_service_was_last_asked_vouches_for_nobody(scene: Scene) -> None:
    older = scene.keyring.signer()
    scene.keyring.rotate(DAY_S)
    scene.clock.at += 2 * DAY_S
    scene.ask()
    assert not scene.is_fooled(older, older.nbf)


@pytest.mark.parametrize("overlap_s", [0, 1, OVERLAP_S])
def test_a_client_follows_every_rotation(scene: Scene, overlap_s: int) -> None:
    for _ in range(3):
        newer = scene.keyring.rotate(overlap_s)
        assert scene.believes(newer.kid)
        scene.clock.at += DAY_S


@pytest.mark.parametrize("overlap_s", [0, OVERLAP_S])
def test_a_client_that_was_away_believes_the_last_key(scene: Scene, overlap_s: int) -> None:
    newest = scene.keyring.signer()
    for _ in range(3):
        scene.clock.at += LIFETIME_S - OVERLAP_S - 1
        newest = scene.keyring.rotate(overlap_s)
    scene.clock.at += OVERLAP_S + 1
    assert scene.keyring.public().keys() == {newest.kid}
    assert scene.believes(newest.kid)


def test_remembered_keys_can_be_read_and_those_without_the_time_are_asked_for_again(scene: Scene) -> None:
    path = scene.client().path
    assert KeySet.model_validate_json(path.read_bytes()) == scene.keyring.published()
    kept = json.loads(path.read_bytes())
    path.write_text(json.dumps({"keys": kept["keys"]}))
    newer = scene.keyring.rotate()
    assert scene.believes(scene.keyring.signer().kid)
    assert newer.kid in scene.client().known()


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"asked": 1}'])
def test_a_file_without_keys_is_no_reason_to_believe_anew(scene: Scene, content: str) -> None:
    scene.client().path.write_text(content)
    with pytest.raises(UntrustedArtifactError, match="damaged"):
        asyncio.run(scene.client().look_up(scene.keyring.signer().kid))


def test_a_clock_that_was_put_back_is_no_reason_not_to_ask(scene: Scene) -> None:
    key = scene.keyring.signer()
    revoked = scene.keyring.revoke(key.kid)
    scene.clock.at -= DAY_S
    assert scene.believes(key.kid)
    assert scene.client().known()[key.kid].exp == revoked.exp


def test_keys_are_heard_of_while_another_thread_knows_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keyring = Keyring(tmp_path / "keys")
    kid = keyring.signer().kid
    has_read, writes, asks_late = Event(), Event(), Event()
    read, write = KeptKeys.read, KeptKeys.write

    def late_read(path: Path) -> KeptKeys:
        kept = read(path)
        if current_thread().name == "late" and not has_read.is_set():
            has_read.set()
            assert writes.wait(30)
        return kept

    def long_write(kept: KeptKeys, path: Path) -> None:
        write(kept, path)
        if current_thread().name != "late":
            writes.set()
            assert asks_late.wait(30)

    async def fetch() -> bytes:
        if current_thread().name == "late":
            asks_late.set()
        return keyring.published().model_dump_json(exclude_none=True).encode()

    monkeypatch.setattr(KeptKeys, "read", staticmethod(late_read))
    monkeypatch.setattr(KeptKeys, "write", long_write)
    keys = ServiceKeys("https://kiln.example", fetch, tmp_path / "config")
    late = Thread(target=lambda: asyncio.run(keys.look_up(kid)), name="late")
    late.start()
    assert has_read.wait(30)
    assert kid in asyncio.run(keys.look_up(kid))
    late.join()
