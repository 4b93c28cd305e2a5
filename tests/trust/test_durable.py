"""What somebody was promised is there after a power failure, at whatever moment that was."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import threading
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from service.engine.job import Job
from service.identity.caller import LOCAL, acting_as
from service.store.blobs import FRESH_S, Blobs
from service.store.job_records import JobRecords
from service.store.location import open_store
from service.store.records import Records
from service.wire.body import Body
from tensorkiln.errors import UnavailableError
from tests.service.house import House, bodies_in, ended
from tests.trust.stores import Stocked, age

Left: TypeAlias = Mapping[str, bytes]
"""The files that are left, by path."""


class Power:
    """Watches what is synchronised below `root`. With `cuts`, what a failure would leave is kept at every step."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root: Final = root
        self.cuts: list[Left] | None = None
        self.synchronised: list[Path] = []
        self.threads: set[str] = set()
        self._bytes: dict[int, bytes] = {}
        self._names: dict[int, dict[str, tuple[int, bool]]] = {}
        self._lock = threading.RLock()
        for name in ("fsync", "replace", "link", "unlink"):
            monkeypatch.setattr(os, name, self._watched(name, getattr(os, name)))

    def _watched(self, name: str, real: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            with self._lock:
                real(*arguments)
                if name == "fsync":
                    self._keep(arguments[0])
                if self.cuts is not None:
                    self.cut()

        return call

    def cut(self) -> None:
        """Keep what a failure would leave now: of a disk that does nothing of itself, and of one whose names come
        before the bytes."""
        with self._lock:
            if self.cuts is not None:
                self.cuts += [self.lazily(), self.eagerly()]

    def lazily(self) -> Left:
        """What is left where nothing comes to the disk that was not synchronised."""
        left: dict[str, bytes] = {}
        self._collect("", self.root.stat().st_ino, left)
        return left

    def eagerly(self) -> Left:
        """What is left where names come to the disk at once, and bytes when they are synchronised."""
        files = [path for path in self.root.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.root)): self._bytes.get(path.stat().st_ino, b"") for path in files}

    def _keep(self, descriptor: int) -> None:
        found, path = os.fstat(descriptor), Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        self.synchronised.append(path)
        self.threads.add(threading.current_thread().name)
        if stat.S_ISDIR(found.st_mode):
            self._names[found.st_ino] = {entry.name: (entry.inode(), entry.is_dir()) for entry in os.scandir(path)}
        else:
            self._bytes[found.st_ino] = path.read_bytes()

    def _collect(self, path: str, folder: int, left: dict[str, bytes]) -> None:
        for name, (inode, is_folder) in self._names.get(folder, {}).items():
            if is_folder:
                self._collect(f"{path}{name}/", inode, left)
            else:
                left[path + name] = self._bytes.get(inode, b"")


def restored(left: Left, to: Path) -> Path:
    for path, content in left.items():
        (to / path).parent.mkdir(parents=True, exist_ok=True)
        (to / path).write_bytes(content)
    return to


BODY = Body(b"{}", sha256(b"{}").hexdigest())


@pytest.fixture
def power(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Power:
    return Power(tmp_path / "store", monkeypatch)


async def accepted(house: House, answer: bytes | None = None) -> Job:
    jobs = house.jobs()
    try:
        with acting_as(LOCAL):
            return await jobs.accept(BODY, answer)
    finally:
        await jobs.close()


async def test_a_job_survives_any_power_failure(power: Power, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    delete = Records.delete

    async def watched(self: Records, path: str) -> None:
        await delete(self, path)
        power.cut()

    monkeypatch.setattr(Records, "delete", watched)
    async with House(power.root).working() as jobs:
        job = await jobs.accept(BODY)
        power.cuts = []
        power.cut()
        await ended(jobs, job.record.id)
        cuts, power.cuts = power.cuts, None
    # To take it up again, a service writes its record anew.
    states: set[str] = set()
    for number, left in enumerate(cuts):
        store = open_store(str(restored(left, tmp_path / f"{number}")))
        record, blobs = await JobRecords(Records(store)).find(job.record.id), Blobs(store)
        assert record is not None, left
        states.add(record.state)
        if record.has_ended:
            assert record.answer is not None
            assert (record.state, await blobs.get(record.answer)) == ("done", b"answer")
        else:
            with acting_as(LOCAL):
                body = await bodies_in(store).get(record.body)
            assert body is not None
            assert body.content == BODY.content
    assert states == {"queued", "running", "done"}


async def test_a_job_taken_up_survives_a_power_failure(power: Power, tmp_path: Path) -> None:
    house = House(power.root)
    job = await accepted(house)
    power.cuts = []
    assert await house.job_records.orphan(job.record.id, "another") is not None
    cuts, power.cuts = power.cuts, None
    attempts: set[int] = set()
    for number, left in enumerate(cuts):
        store = open_store(str(restored(left, tmp_path / f"{number}")))
        record = await JobRecords(Records(store)).find(job.record.id)
        assert record is not None
        attempts.add(record.attempt)
    assert attempts == {1, 2}


async def test_a_job_that_is_over_at_once_survives_a_power_failure(power: Power, tmp_path: Path) -> None:
    job = await accepted(House(power.root), b"repeated")
    store = open_store(str(restored(power.lazily(), tmp_path / "again")))
    record = await JobRecords(Records(store)).find(job.record.id)
    assert record is not None
    assert record.answer is not None
    assert await Blobs(store).get(record.answer) == b"repeated"


async def test_a_signed_record_is_whole_or_not_there_after_a_power_failure(power: Power) -> None:
    stocked = Stocked.at(power.root)
    power.cuts = []
    wanted = await stocked.save(1)
    await stocked.save(1)
    path = str(stocked.path(wanted).relative_to(power.root))
    for left in power.cuts:
        assert left.get(path) != b""
    assert path in power.lazily()


async def test_an_accept_synchronises_two_files_and_their_folders_and_not_in_the_event_loop(power: Power) -> None:
    house = House(power.root)
    records, bodies = house.job_records, bodies_in(house.store)
    first = (await accepted(house)).record
    power.synchronised.clear()
    power.threads.clear()
    with acting_as(LOCAL):
        await bodies.put(BODY, durable=True)
    await records.write(first)
    folders = {path for path in power.synchronised if path.is_dir()}
    # A new view of the store makes sure, once, of the folders above.
    assert len(power.synchronised) - len(folders) == 2
    power.synchronised.clear()
    with acting_as(LOCAL):
        await bodies.put(BODY, durable=True)
    await records.write(first)
    digest = first.body
    assert [path for path in power.synchronised if path.is_dir()] == [
        power.root / "blobs" / digest[:2],
        power.root / "jobs" / "open",
    ]
    assert len(power.synchronised) == 4
    assert all(name.startswith("kiln-disk") for name in power.threads)


async def test_recomputable_entries_are_not_synchronised(power: Power) -> None:
    store = open_store(str(power.root))
    power.synchronised.clear()
    await Blobs(store).put(b"artifact")
    await Records(store).put("requests/ab/x", {})
    assert power.synchronised == []
    bucket = open_store("memory:///")
    digest = await Blobs(bucket).put(b"body", durable=True)
    assert await Blobs(bucket).get(digest) == b"body"
    assert await Records(bucket).create("jobs/ended/ab/x", {"n": 1}, durable=True)
    assert not await Records(bucket).create("jobs/ended/ab/x", {"n": 2}, durable=True)
    await Records(bucket).put("jobs/open/x", {}, durable=True)
    assert power.synchronised == []


def test_a_store_that_is_made_is_durable_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    power = Power(tmp_path / "home" / "store", monkeypatch)
    open_store(str(power.root))
    assert power.synchronised == [tmp_path / "home", tmp_path]
    assert power.root.stat().st_mode & 0o777 == 0o700
    open_store(str(power.root))
    assert len(power.synchronised) == 2


async def test_a_blob_that_is_promised_is_not_written_again(power: Power) -> None:
    blobs = Blobs(open_store(str(power.root)))
    digest = await blobs.put(b"body", durable=True)
    path = power.root / "blobs" / digest[:2] / digest
    age(path, 2 * FRESH_S)
    before = path.stat()
    await blobs.put(b"body")
    after = path.stat()
    assert (after.st_ino, after.st_mtime - before.st_mtime > FRESH_S) == (before.st_ino, True)
    assert power.eagerly()[f"blobs/{digest[:2]}/{digest}"] == b"body"
    # One that was put without a promise is synchronised when there is one.
    other = await blobs.put(b"other")
    assert power.eagerly()[f"blobs/{other[:2]}/{other}"] == b""
    await blobs.put(b"other", durable=True)
    assert power.lazily()[f"blobs/{other[:2]}/{other}"] == b"other"


async def test_one_of_several_creates_a_durable_record_and_all_find_it_durable(power: Power) -> None:
    views = [Records(open_store(str(power.root))) for _ in range(8)]
    made = await asyncio.gather(*(view.create("a/b/c", {"by": n}, durable=True) for n, view in enumerate(views)))
    assert sum(made) == 1
    assert await views[0].get("a/b/c") == {"by": made.index(True)}
    assert list(power.lazily()) == ["a/b/c"]
    assert [path.name for path in power.root.rglob("*") if path.is_file()] == ["c"]


async def test_a_disk_that_fails_accepts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(tmp_path / "store")

    def fails(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(UnavailableError, match=r"does not take a blob: .*Input/output error"):
        await accepted(house)
    assert await house.job_records.opened() == []
    assert not list((tmp_path / "store").rglob("*#*"))
