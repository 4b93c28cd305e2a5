"""Stored programs and repeated answers are used while their signer is trusted; else they are made again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from service.store.attempts import Attempt, Crashes
from service.store.programs import Miss
from service.store.repeats import Repeat, Repeats
from service.trust.keyring import KeyFile, Keyring
from service.trust.notary import Notary
from service.upkeep.scrub import scrub
from tensorkiln.trust import SignedRecord
from tests.clocks import LateClock, by
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server, cache
from tests.trust.forgery import altered, fresh_key, signed
from tests.trust.stores import Stocked, action, counted

Forge = Callable[[SignedRecord, KeyFile], str]


def text(of: SignedRecord) -> str:
    return of.to_json().decode()


FORGERIES: dict[str, Forge] = {
    "unsigned": lambda true, key: "",
    "no record": lambda true, key: "{}",
    "wrong key": lambda true, key: text(
        signed(other := fresh_key(), true.record.model_copy(update={"key": other.kid}))
    ),
    "key named wrongly": lambda true, key: text(signed(fresh_key(), true.record)),
    "tampered program": lambda true, key: text(altered(true, program="0" * 64)),
    "tampered artifacts": lambda true, key: text(altered(true, artifacts=())),
    "swapped action": lambda true, key: text(signed(key, true.record.model_copy(update={"action": "0" * 64}))),
    "lower isolation": lambda true, key: text(signed(key, true.record.model_copy(update={"isolation": "none"}))),
    "issued before the key": lambda true, key: text(signed(key, true.record.model_copy(update={"issued_at": 1}))),
    "another build": lambda true, key: text(signed(key, true.record.model_copy(update={"build_id": "other"}))),
}


@pytest.mark.parametrize("name", FORGERIES)
async def test_a_record_that_is_not_as_it_was_signed_is_no_hit(stocked: Stocked, tmp_path: Path, name: str) -> None:
    wanted, before = await stocked.save(1), counted("program")
    assert await stocked.is_whole(wanted)
    path = f"programs/{wanted.digest[:2]}/{wanted.digest}"
    stored = await stocked.records.get(path)
    assert stored is not None
    true = SignedRecord.model_validate_json(stored["signed"])
    forged = FORGERIES[name](true, Keyring(tmp_path / "keys").signer())
    # Sealed as every record is: what gives it away is the signature alone.
    await stocked.records.put(path, {"signed": forged})
    found = await stocked.programs.find(wanted, with_dumps=False)
    # Why it is one is told by what else is stored: see service.engine.compiles.
    assert found == Miss("")
    if name != "another build":
        assert await stocked.programs.entry(wanted.digest) is None
        assert counted("program") - before == 2
    await stocked.save(1)
    assert await stocked.is_whole(wanted)


async def test_an_answer_that_the_service_did_not_write_is_not_repeated(stocked: Stocked) -> None:
    before, key = counted("answer"), stocked.repeats.key("a" * 64)
    await stocked.repeats.save(key, Repeat(b"true", isolation="process"))
    path = f"requests/{key[:2]}/{key}"
    true = await stocked.records.get(path)
    assert true is not None
    forged = await stocked.blobs.put(b"forged")
    for record in ({**true, "answer": forged}, {"answer": forged, "blobs": []}, {**true, "blobs": [forged]}):
        await stocked.records.put(path, record)
        assert await stocked.repeats.find(key) is None
    other = stocked.repeats.key("b" * 64)
    await stocked.records.put(f"requests/{other[:2]}/{other}", true)
    assert await stocked.repeats.find(other) is None
    await stocked.records.put(f"requests/{other[:2]}/{other}", {**true, "request": key})
    assert await stocked.repeats.find(other) is None
    assert not (await scrub(stocked.store, stocked.notary, dry_run=True)).is_clean
    await stocked.records.delete(f"requests/{other[:2]}/{other}")
    await stocked.records.put(path, true)
    found = await stocked.repeats.find(key)
    assert found is not None
    assert found.answer == b"true"
    assert counted("answer") - before == 7


async def test_a_crash_that_is_not_sealed_is_told_as_one(stocked: Stocked, tmp_path: Path) -> None:
    await stocked.crash("key", {})
    others = Crashes(stocked.records, Notary(Keyring(tmp_path / "other"), "there", "process"))
    crashes, answers = counted("crash"), counted("answer")
    with capture_logs() as logs:
        again = await others.begin("key")
    assert isinstance(again, Attempt)
    assert again.number == 1
    assert (counted("crash"), counted("answer")) == (crashes + 1, answers)
    assert [entry["kind"] for entry in logs] == ["crash"]


async def test_the_crash_of_another_action_is_none(stocked: Stocked) -> None:
    crashes = Crashes(stocked.records, stocked.notary)
    await crashes.write("crashes/true", "key", {})
    true = await stocked.records.get("crashes/true")
    assert true is not None
    assert crashes.read("key", true) is not None
    for forged in (true, {**true, "crash": "key"}):
        assert crashes.read("other", forged) is None


def test_records_of_one_compile_differ_in_time_and_worker_alone(tmp_path: Path) -> None:
    made = action(1)
    one = by(LateClock(5), Notary(Keyring(tmp_path), "a", "process"))
    two = Notary(Keyring(tmp_path), "b", "process")
    left, right = (notary.sign(made, "c" * 64, ["e" * 64, "d" * 64], {}).record for notary in (one, two))
    assert left != right
    assert left.model_copy(update={"worker": "b", "issued_at": right.issued_at}) == right
    assert right.artifacts == ("d" * 64, "e" * 64)


def forge_store(server: Server, change: Callable[[dict[str, Any]], None]) -> None:
    """Rewrite every program's record, sealed as the service seals it, and forget the repeated answers."""
    for path in (server.home / "store" / "programs").rglob("*"):
        if path.is_file():
            record = json.loads(path.read_bytes().partition(b"\n")[2])
            record["signed"] = json.loads(record["signed"])
            change(record["signed"])
            body = json.dumps({"signed": json.dumps(record["signed"])}).encode()
            path.write_bytes(sha256(body).hexdigest().encode() + b"\n" + body)


def test_a_service_compiles_again_what_somebody_wrote_into_its_store(tmp_path: Path) -> None:
    body = encoded(compile_body(graph("exp2")))
    poison = b"\x7fELF poison"
    digest = sha256(poison).hexdigest()

    def poisoned(signed_record: dict[str, Any]) -> None:
        signed_record["record"]["artifacts"] = [digest]

    with Server(tmp_path / "kiln") as server:
        true = server.compile(body).json()
        folder = server.home / "store" / "blobs" / digest[:2]
        folder.mkdir(exist_ok=True)
        (folder / digest).write_bytes(poison)
        forge_store(server, poisoned)
        again = server.compile(body + b" ")
        assert cache(again) == ("miss", "the stored program was damaged")
        assert again.json()["programs"][0]["kernels"] == true["programs"][0]["kernels"]
        assert digest not in again.json()["signatures"][0]["record"]["artifacts"]
        assert "not trusted" in server.log()
        assert cache(server.compile(body + b"  "))[0] == "hit"


PLAIN, RENAMED = encoded(compile_body()), encoded(compile_body(graph(name="other")))
BOTH = encoded(compile_body(target=["cpu:x86-64-v3", "cpu:x86-64-v2"]))


def revoke(server: Server, kid: str) -> None:
    """End a key, and come back when the service knows."""
    Keyring(server.home / "keys").revoke(kid)
    while any(key["kid"] == kid and key["exp"] > time.time() for key in server.http.get("/keys").json()["keys"]):
        time.sleep(0.05)


def signers(server: Server, body: bytes) -> list[str]:
    return [signed["record"]["key"] for signed in server.compile(body).json()["signatures"]]


def test_programs_of_an_ended_key_are_compiled_again_on_every_route(tmp_path: Path) -> None:
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
async def test_each_key_that_vouches_for_an_answer_counts(stocked: Stocked, tmp_path: Path, ended: int) -> None:
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
