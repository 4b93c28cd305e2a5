"""A scrub that was given the wrong keys removes nothing: by them nobody in the store is to be believed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from service.store.repeats import Repeat
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from service.upkeep.scrub import require_signer
from tensorkiln.errors import RequestError
from tests.trust.conftest import Ran, Scrubbed
from tests.trust.stores import Stocked


def stock(home: Path) -> Stocked:
    """Two programs and a repeated answer, signed by the keys of this home."""
    stocked = Stocked.at(home / "store")

    async def run() -> None:
        await stocked.save(1)
        await stocked.save(2)
        await stocked.repeats.save(stocked.repeats.key("a" * 64), Repeat(b"answer", isolation="process"))

    asyncio.run(run())
    return stocked


def test_a_command_with_the_wrong_keys_is_refused_unless_they_are_said_to_be_lost(
    ran: Ran, scrubbed: Scrubbed, tmp_path: Path
) -> None:
    stocked, nowhere = stock(tmp_path), tmp_path / "elsewhere"
    before = stocked.files()
    refused = ran("service.upkeep.scrub", KILN_HOME=str(tmp_path), KILN_KEYS=str(nowhere))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert str(nowhere) in refused.stderr
    assert "--lost-keys" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert stocked.files() == before
    assert not nowhere.exists()
    (tmp_path / "keys").rename(nowhere)
    status, report = scrubbed("--lost-keys")
    assert (status, len(report["untrusted"])) == (1, 3)
    assert not stocked.files("programs")


@pytest.mark.parametrize("others", ["none", "another home's"])
@pytest.mark.parametrize("folder", ["programs", "requests"])
def test_keys_of_which_none_has_signed_anything_are_the_wrong_ones(tmp_path: Path, others: str, folder: str) -> None:
    stocked, wrong = stock(tmp_path), Keyring(tmp_path / "wrong")
    if others != "none":
        wrong.signer()
    for path in stocked.files("requests" if folder == "programs" else "programs"):
        path.unlink()
    with pytest.raises(RequestError, match="wrong"):
        asyncio.run(require_signer(stocked.store, wrong.published(), tmp_path / "wrong"))


@pytest.mark.parametrize("state", ["good", "revoked", "rotated", "with those of others", "forged beside"])
def test_keys_that_have_signed_something_here_are_the_right_ones(tmp_path: Path, state: str) -> None:
    stocked, right = stock(tmp_path), Keyring(tmp_path / "keys")
    if state == "revoked":
        right.revoke(right.signer().kid)
    elif state == "rotated":
        right.rotate(0)
    elif state == "forged beside":
        stranger = Notary(Keyring(tmp_path / "stranger"), "there", "process")
        asyncio.run(replace(stocked, programs=type(stocked.programs)(stocked.records, stocked.blobs, stranger)).save(0))
    elif state == "with those of others":
        for path in (tmp_path / "keys").glob("*.jwk"):
            (tmp_path / "more").mkdir()
            path.rename(tmp_path / "more" / path.name)
        right = Keyring(tmp_path / "more")
        right.rotate(0)
    asyncio.run(require_signer(stocked.store, right.published(), tmp_path / "keys"))


async def test_a_store_in_which_nothing_is_signed_needs_no_keys(stocked: Stocked, tmp_path: Path) -> None:
    await stocked.blobs.put(b"content")
    for number, signed in enumerate(["{}", "not JSON", '{"record":{"key":5}}', 5]):
        await stocked.records.put(f"programs/ab/{number}", {"signed": signed})
    await stocked.records.put("requests/ab/1", {"seal": "x"})
    (stocked.root / "programs" / "ab" / "torn").write_bytes(b"{")
    await require_signer(stocked.store, Keyring(tmp_path / "nowhere").published(), tmp_path / "nowhere")
