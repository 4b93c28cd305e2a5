"""The command that scrubs a store says 1 of what is stored alone, and removes nothing by the wrong keys."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from service.store.evict import LEFT_S
from service.store.repeats import Repeat
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from service.upkeep.scrub import require_signer
from tensorkiln.errors import RequestError
from tests.trust.conftest import Ran, Scrubbed
from tests.trust.stores import Stocked, age


def stock(home: Path) -> Stocked:
    """Two programs and a repeated answer, signed by the keys of this home."""
    stocked = Stocked.at(home / "store")

    async def run() -> None:
        await stocked.save(1)
        await stocked.save(2)
        await stocked.repeats.save(stocked.repeats.key("a" * 64), Repeat(b"answer", isolation="process"))

    asyncio.run(run())
    return stocked


def test_wrong_keys_are_refused_unless_they_are_lost(scrub: Ran, scrubbed: Scrubbed, tmp_path: Path) -> None:
    stocked, nowhere = stock(tmp_path), tmp_path / "elsewhere"
    before = stocked.files()
    require_refused(scrub(tmp_path, KILN_KEYS=str(nowhere)), str(nowhere), "--lost-keys")
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


@pytest.fixture
def scrub(ran: Ran) -> Ran:
    def run(home: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return ran("service.upkeep.scrub", *arguments, KILN_HOME=str(home), **variables)

    return run


def require_refused(ended: subprocess.CompletedProcess[str], *words: str) -> None:
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "Traceback" not in ended.stderr
    assert [word for word in words if word not in ended.stderr] == []


@pytest.mark.parametrize(("name", "value"), [("KILN_QUEUE", ""), ("KILN_STORE_MAX_MIB", "-5"), ("KILN_OIDC", "{")])
def test_an_invalid_setting_is_told_as_by_the_service(scrub: Ran, tmp_path: Path, name: str, value: str) -> None:
    stock(tmp_path)
    require_refused(scrub(tmp_path, "--dry-run", **{name: value}), name, "docs/operations.md")


@pytest.mark.parametrize("arguments", [(), ("--dry-run",), ("--max-mib", "1"), ("--purge-build", "0" * 64)])
def test_a_missing_store_is_neither_made_nor_clean(scrub: Ran, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    typo = tmp_path / "no" / "such"
    require_refused(scrub(tmp_path, *arguments, "--store", str(typo)), str(typo), "no such directory")
    require_refused(scrub(tmp_path, *arguments, "--store", typo.as_uri()), str(typo), "no such directory")
    require_refused(scrub(tmp_path / "typo", *arguments), str(tmp_path / "typo" / "store"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        *(("--max-mib", value, "--max-mib") for value in ("-5", "nan", "0.5", "")),
        *(("--max-age-h", value, "--max-age-h") for value in ("-1", "-0.001", "nan", "inf", "1e999", "x")),
        ("--purge-build", "ab", "64 lower-case hexadecimal digits"),
        ("--store", "/dev/null/store", "cannot be opened"),
    ],
)
def test_an_invalid_option_removes_nothing(scrub: Ran, tmp_path: Path, option: str, value: str, said: str) -> None:
    stocked = stock(tmp_path)
    before = stocked.files()
    require_refused(scrub(tmp_path, option, value), said)
    assert stocked.files() == before


def test_a_bound_of_0_is_none_whatever_the_settings_say(scrub: Ran, tmp_path: Path) -> None:
    stock(tmp_path)
    ended = scrub(tmp_path, "--max-mib", "0", "--max-age-h", "0", KILN_STORE_MAX_MIB="1")
    assert (ended.returncode, json.loads(ended.stdout)["evicted"]) == (0, None)


def test_special_files_are_not_unfinished_writes(scrubbed: Scrubbed, stocked: Stocked) -> None:
    folder, loop, left = (stocked.root / name for name in ("folder#1", "loop#2", "left#3"))
    folder.mkdir()
    loop.symlink_to(loop)
    left.write_bytes(b"half")
    for path in (folder, left):
        age(path, 2 * LEFT_S)
    os.utime(loop, (0, 0), follow_symlinks=False)
    assert scrubbed("--dry-run")[1]["unfinished"] == [str(left)]
    status, report = scrubbed()
    assert (status, report["unfinished"]) == (0, [str(left)])
    assert folder.is_dir()
    assert loop.is_symlink()
    assert not left.exists()
