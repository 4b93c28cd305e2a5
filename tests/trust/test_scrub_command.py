"""The command that scrubs a store says 1 of what is stored alone, and of nothing else that it found wrong."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from service.store.evict import LEFT_S
from tests.trust.conftest import Ran, Scrubbed
from tests.trust.stores import Stocked, age
from tests.trust.test_scrub_keys import stock


@pytest.fixture
def scrub(ran: Ran) -> Ran:
    """Scrubs the store of a home."""

    def run(home: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return ran("service.upkeep.scrub", *arguments, KILN_HOME=str(home), **variables)

    return run


def require_refused(ended: subprocess.CompletedProcess[str], *words: str) -> None:
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "Traceback" not in ended.stderr
    assert [word for word in words if word not in ended.stderr] == []


@pytest.mark.parametrize(("name", "value"), [("KILN_QUEUE", ""), ("KILN_STORE_MAX_MIB", "-5"), ("KILN_OIDC", "{")])
def test_a_setting_that_cannot_be_is_told_as_the_service_tells_it(
    scrub: Ran, tmp_path: Path, name: str, value: str
) -> None:
    stock(tmp_path)
    require_refused(scrub(tmp_path, "--dry-run", **{name: value}), name, "docs/operations.md")


@pytest.mark.parametrize("arguments", [(), ("--dry-run",), ("--max-mib", "1"), ("--purge-build", "0" * 64)])
def test_a_store_that_is_not_there_is_neither_made_nor_clean(
    scrub: Ran, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    typo = tmp_path / "no" / "such"
    require_refused(scrub(tmp_path, *arguments, "--store", str(typo)), str(typo), "no such directory")
    require_refused(scrub(tmp_path, *arguments, "--store", typo.as_uri()), str(typo), "no such directory")
    require_refused(scrub(tmp_path / "typo", *arguments), str(tmp_path / "typo" / "store"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--max-mib", value) for value in ("-5", "nan", "0.5", "")),
        *(("--max-age-h", value) for value in ("-1", "-0.001", "nan", "inf", "1e999", "x")),
    ],
)
def test_a_bound_that_the_settings_do_not_take_evicts_nothing(
    scrub: Ran, tmp_path: Path, option: str, value: str
) -> None:
    stocked = stock(tmp_path)
    before = stocked.files()
    require_refused(scrub(tmp_path, option, value), option)
    assert stocked.files() == before


def test_a_bound_of_0_is_none_whatever_the_settings_say(scrub: Ran, tmp_path: Path) -> None:
    stock(tmp_path)
    ended = scrub(tmp_path, "--max-mib", "0", "--max-age-h", "0", KILN_STORE_MAX_MIB="1")
    assert (ended.returncode, json.loads(ended.stdout)["evicted"]) == (0, None)


def test_what_is_no_file_is_not_taken_for_what_a_writer_left(scrubbed: Scrubbed, stocked: Stocked) -> None:
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
