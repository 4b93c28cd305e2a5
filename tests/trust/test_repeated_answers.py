"""An answer is repeated while all that it rests on is: the keys that signed its programs, and their records."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from service.store.repeats import Repeat, Repeats
from service.trust.keyring import Keyring
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server, cache
from tests.trust.stores import Stocked

PLAIN, RENAMED = encoded(compile_body()), encoded(compile_body(graph(name="other")))
BOTH = encoded(compile_body(target=["cpu:x86-64-v3", "cpu:x86-64-v2"]))


def revoke(server: Server, kid: str) -> None:
    """End a key, and come back when the service knows."""
    Keyring(server.home / "keys").revoke(kid)
    while any(key["kid"] == kid and key["exp"] > time.time() for key in server.http.get("/keys").json()["keys"]):
        time.sleep(0.05)


def signers(server: Server, body: bytes) -> list[str]:
    """The keys by which the programs of an answer are signed."""
    return [signed["record"]["key"] for signed in server.compile(body).json()["signatures"]]


def test_what_a_key_signed_is_compiled_again_after_its_end_however_it_was_asked_for(tmp_path: Path) -> None:
    with Server(tmp_path / "kiln") as server:
        (first,) = signers(server, PLAIN)
        second = Keyring(server.home / "keys").rotate().kid
        while second not in {key["kid"] for key in server.http.get("/keys").json()["keys"]}:
            time.sleep(0.05)
        # An answer with a program that the first key signed, sealed by the second.
        assert cache(server.compile(RENAMED)) == ("hit", "same action")
        assert cache(server.compile(RENAMED)) == ("hit", "same request")
        assert signers(server, RENAMED) == [first]
        assert signers(server, BOTH) == [first, second]
        revoke(server, first)
        assert cache(server.compile(RENAMED)) == ("miss", "the stored program was damaged")
        assert signers(server, RENAMED) == signers(server, PLAIN) == [second]
        assert signers(server, BOTH) == [second, second]


@pytest.mark.parametrize("ended", range(3))
async def test_each_key_that_vouches_for_an_answer_has_to_be_valid(
    stocked: Stocked, tmp_path: Path, ended: int
) -> None:
    keyring = Keyring(tmp_path / "keys")
    kids = [keyring.signer().kid, keyring.rotate().kid, keyring.rotate().kid]

    def fresh() -> Repeats:
        return Repeats(stocked.records, stocked.blobs, "", 1 << 20, Stocked.at(tmp_path / "store").notary)

    def remembering() -> Repeats:
        repeats = fresh()
        repeats.remember("remembered", Repeat(b"answer", keys=tuple(kids), isolation="process"))
        return repeats

    # The last of them seals what is saved.
    await fresh().save("saved", Repeat(b"answer", keys=tuple(kids[:2]), isolation="process"))
    places = [(fresh(), "saved"), (remembering(), "remembered")]
    found = [await repeats.find(key) for repeats, key in places]
    assert [each.answer for each in found if each is not None] == [b"answer"] * 2
    keyring.revoke(kids[ended])
    known = [await repeats.find(key) for repeats, key in ((fresh(), "saved"), (remembering(), "remembered"))]
    assert known == [None, None]


async def test_an_answer_of_less_isolation_is_not_repeated_wherever_it_is(stocked: Stocked) -> None:
    repeats = Repeats(stocked.records, stocked.blobs, "", 1 << 20, stocked.notary)
    await repeats.save("saved", Repeat(b"answer", isolation="process"))
    repeats.remember("remembered", Repeat(b"answer", isolation="process"))
    for key in ("saved", "remembered"):
        assert await repeats.find(key) is not None
    stocked.notary.isolation = "landlock+seccomp"
    for key in ("saved", "remembered"):
        assert await repeats.find(key) is None, key
    repeats.remember("remembered", Repeat(b"answer", isolation="landlock+seccomp"))
    assert await repeats.find("remembered") is not None
