"""The page on trust says what is so."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from service.identity.caller import EVERYTHING
from service.settings import Settings
from service.trust.keyring import LIFETIME_S, OVERLAP_S, Keyring
from tensorkiln.trust import LEVELS, PublicKey, SignedRecord, verify
from tensorkiln.trust.policy import CACHE_MIB, MINIMUM_ISOLATION
from tensorkiln.trust.record import ActionRecord
from tests.snippets import ROOT, blocks, run_commands, run_python, shown_commands
from tests.trust.stores import Stocked
from tests.trust.test_purge import BAD, Home, made

PAGE = ROOT / "docs" / "trust.md"
TEXT = PAGE.read_text("utf-8")


def example() -> SignedRecord:
    (block,) = blocks(PAGE, "json", "example")
    return SignedRecord.model_validate_json(block.text)


def test_the_record_of_the_page_has_the_signature_of_the_page() -> None:
    key = PublicKey.of("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
    signed = example()
    record = signed.record
    assert verify(signed, {key.kid: key}, action=record.action, now=record.issued_at) == record


def test_every_python_block_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KILN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(ROOT)
    assert len(blocks(PAGE, "python")) == 3
    run_python(PAGE)


def test_a_build_is_purged_by_the_commands_of_the_page(stocked: Stocked, tmp_path: Path) -> None:
    asyncio.run(made(stocked, 1, BAD))
    kid = Keyring(tmp_path / "keys").published().keys[0].kid
    variables = {"KILN_HOME": str(tmp_path), "BUILD_ID": BAD, "KID": kid}
    run_commands(shown_commands(PAGE, "purge"), {**os.environ, **variables})
    assert not stocked.files("programs")
    assert not Stocked.at(tmp_path / "store").notary.is_valid(kid)


def test_a_tenant_is_purged_by_the_commands_of_the_page(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.keyring.make("", "acme", EVERYTHING, None)
    asyncio.run(home.fill("acme", 1))
    home.age("access")
    run_commands(shown_commands(PAGE, "purge-tenant"), {**os.environ, "KILN_HOME": str(tmp_path)})
    assert not home.stocked.files("programs")


def test_every_field_setting_and_default_is_there() -> None:
    assert all(f"| `{name}` |" in TEXT for name in ActionRecord.model_fields if name != "version")
    assert all(f"`{level}`" in TEXT for level in LEVELS)
    for name in ("keys", "worker", "store_max_mib", "store_max_age_h"):
        assert name in Settings.model_fields
        assert f"`KILN_{name.upper()}`" in TEXT
    assert f"`KILN_CACHE_MIB` | {CACHE_MIB} |" in TEXT
    assert f"`KILN_MIN_ISOLATION` | `{MINIMUM_ISOLATION}` |" in TEXT
    assert (LIFETIME_S, OVERLAP_S) == (365 * 86_400, 30 * 86_400)
