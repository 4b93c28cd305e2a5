"""A name in the store that cannot be one of its own costs itself alone: what lies beside it is listed as ever."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from obstore.store import LocalStore

from service.engine.farm.ledger import generation
from service.store.evict import Bounds, evict
from service.store.inventory import items, take_inventory
from service.store.location import open_store
from service.store.records import Records
from service.upkeep.scrub import scrub
from tensorkiln.errors import UnavailableError
from tests.service.house import LEFT, House
from tests.service.test_farm_engine import in_rig
from tests.trust.stores import Stocked

Make = Callable[[Path], object]


def file_called(name: bytes) -> Make:
    return lambda folder: Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(b"junk")


def folder_called(name: bytes) -> Make:
    def make(folder: Path) -> None:
        inner = Path(os.fsdecode(os.fsencode(folder) + b"/" + name))
        inner.mkdir()
        (inner / "inner").write_bytes(b"junk")

    return make


def link_to(*target: str) -> Make:
    return lambda folder: (folder / "link").symlink_to(folder.joinpath(*target))


STRANGE: Final[dict[str, Make]] = {
    "a newline": file_called(b"x\n"),
    "a tabulator": file_called(b"\tx"),
    "a delete": file_called(b"x\x7f"),
    "not UTF-8": file_called(b"x\xff"),
    "a folder with a newline": folder_called(b"x\n"),
    "a folder that is not UTF-8": folder_called(b"x\xff"),
    "a link to itself": link_to("link"),
    "a link to its folder": link_to(),
    "a link to above": link_to(".."),
    "a link to nowhere": link_to("nowhere"),
    "a link below a file": link_to("link", "below"),
    "a link to what no path can be": link_to("x" * 300),
    "a pipe": lambda folder: os.mkfifo(folder / "pipe"),
}

NO_RECORD: Final = {**STRANGE, "a name that is too long for a record": file_called(b"x" * 255)}
strange = pytest.mark.parametrize("make", STRANGE.values(), ids=STRANGE)
no_record = pytest.mark.parametrize("make", NO_RECORD.values(), ids=NO_RECORD)


@no_record
async def test_records_are_listed_beside_it(tmp_path: Path, make: Make) -> None:
    records = Records(open_store(str(tmp_path)))
    for name in ("b", "a"):
        await records.put(f"jobs/open/{name}", {})
    make(tmp_path / "jobs" / "open")
    assert await records.names("jobs/open", 10) == ["a", "b"]


@strange
async def test_a_store_is_scrubbed_and_kept_within_its_bounds_beside_it(stocked: Stocked, make: Make) -> None:
    wanted = await stocked.save(1)
    blobs = stocked.root / "blobs"
    before = await take_inventory(stocked.store)
    for folder in (stocked.path(wanted).parent, next(blobs.iterdir()), blobs, stocked.root):
        make(folder)
    assert await take_inventory(stocked.store) == before
    report = await scrub(stocked.store, stocked.notary)
    assert (report.is_clean, report.blobs, report.records) == (True, 3, len(before.records))
    assert await stocked.is_whole(wanted)
    evicted = await evict(stocked.store, Bounds(max_bytes=0), grace_s=-1.0)
    assert (evicted.records, evicted.blobs, evicted.held_bytes) == (len(before.records), 3, 0)


@no_record
async def test_a_job_of_a_service_that_is_lost_is_taken_up_beside_it(tmp_path: Path, make: Make) -> None:
    house = House(tmp_path)
    await house.job_records.write(LEFT)
    make(tmp_path / "jobs" / "open")
    async with house.working():
        await house.none_is_open()


@no_record
async def test_a_farm_answers_beside_it(tmp_path: Path, make: Make) -> None:
    async with in_rig(tmp_path, is_on_disk=True) as rig:
        ticket, making = await rig.give()
        done = tmp_path / "store" / "farm" / generation() / "done"
        done.mkdir()
        make(done)
        await rig.makes(await rig.task(ticket))
        assert (await asyncio.wait_for(making, 20)).program == b"program"


ORDINARY: Final = (
    "plain", "a b", " a", "a ", "a%b", "a%2Fb", "a*b", "a\\b", 'a"b', "a?b", "a:b", "é", "\x80", "\u2028", ".hidden",
    "...", "a#", "a#x", "a#b#2",
)  # fmt: skip


async def test_ordinary_files_are_listed_as_the_library_lists_them(tmp_path: Path) -> None:
    store, library = open_store(str(tmp_path / "store")), LocalStore(tmp_path / "store")
    chance = random.Random(7)
    for folder in ("", "one", "one/two", "of#3"):
        (tmp_path / "store" / folder).mkdir(exist_ok=True)
        for name in (*ORDINARY, "being made#12", "#1"):
            path = tmp_path / "store" / folder / name
            path.write_bytes(b"x" * chance.randrange(99))
            time_ns = chance.randrange(-(1 << 61), 1 << 62)
            os.utime(path, ns=(time_ns, time_ns))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "inner").write_bytes(b"inner")
    (tmp_path / "store" / "folder link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "store" / "file link").symlink_to(tmp_path / "elsewhere" / "inner")
    (tmp_path / "store" / "empty").mkdir()
    for prefix in ("", "one", "one/two", "of#3", "folder link", "empty", "missing", "file link"):
        expected = sorted(
            (meta["path"], meta["size"], round(meta["last_modified"].timestamp()))
            for chunk in library.list(prefix or None)
            for meta in chunk
        )
        assert sorted([(item.path, item.size, round(item.used)) async for item in items(store, prefix)]) == expected
        objects = library.list_with_delimiter(prefix)["objects"]
        names = sorted(meta["path"].rpartition("/")[2] for meta in objects)
        assert await Records(store).names(prefix, 1000) == names


async def test_more_files_than_are_looked_at_in_one_go_are_all_listed(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    for number in range(2500):
        (tmp_path / str(number)).write_bytes(b"")
    assert {item.path async for item in items(store, "")} == {str(number) for number in range(2500)}


async def test_an_unreadable_folder_is_not_an_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: str | Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    store = open_store(str(tmp_path))
    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(UnavailableError, match="Permission denied"):
        await Records(store).names("", 1)
    with pytest.raises(UnavailableError, match="Permission denied"):
        _ = [item async for item in items(store, "")]
