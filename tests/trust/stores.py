"""Stores with programs in them, made without a compiler."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from service.action import Action
from service.store.attempts import Attempt, Crashes
from service.store.blobs import Blobs
from service.store.evict import GRACE_S
from service.store.location import ObjectStore, open_store
from service.store.nearest import Nearest
from service.store.programs import Entry, Programs
from service.store.records import Records
from service.store.repeats import Repeats
from service.trust.keyring import Keyring
from service.trust.notary import Notary


@dataclass(frozen=True)
class Stocked:
    root: Path
    store: ObjectStore
    notary: Notary
    records: Records
    blobs: Blobs
    programs: Programs
    repeats: Repeats
    nearest: Nearest

    @staticmethod
    def at(root: Path) -> Stocked:
        store = open_store(str(root))
        notary = Notary(Keyring(root.parent / "keys"), "here", "process")
        records, blobs = Records(store), Blobs(store)
        programs, repeats = Programs(records, blobs, notary), Repeats(records, blobs, "epoch", 0, notary)
        nearest = Nearest(records, programs.entry)
        return Stocked(root, store, notary, records, blobs, programs, repeats, nearest)

    async def save(self, number: int, size: int = 1000, shared: bytes = b"shared") -> Action:
        """Store program `number`: a record of `size` bytes, an artifact of `size` bytes and a shared one."""
        contents = [b"%d %d " % (number, part) * (size // 8) for part in range(2)]
        digests = [await self.blobs.put(content) for content in (*contents, shared)]
        made = action(number)
        await self.programs.save(made, Entry(digests[0], tuple(digests[1:])))
        self.nearest.add(made, "")
        await self.nearest.settle()
        return made

    async def crash(self, key: str, told: Mapping[str, Any]) -> None:
        """Have a compile of the action with this key crash, which is told so."""
        attempt = await Crashes(self.records, self.notary).begin(key)
        assert isinstance(attempt, Attempt)
        async with attempt:
            await attempt.crash(problem(told))

    async def is_whole(self, wanted: Action) -> bool:
        """Whether the program is found and every byte of it is there."""
        found = await self.programs.find(wanted, with_dumps=False)
        return isinstance(found, Entry) and all([await self.blobs.get(blob) is not None for blob in found.blobs])

    def path(self, wanted: Action) -> Path:
        return self.root / "programs" / wanted.digest[:2] / wanted.digest

    async def entry(self, digest: str) -> Entry:
        found = await self.programs.entry(digest)
        assert found is not None
        return found

    def age(self, *folders: str, seconds: float = 2 * GRACE_S) -> None:
        """Have all files of these folders be as old as that, by default older than what may be about to be named."""
        for path in (path for folder in folders for path in self.files(folder)):
            age(path, seconds)

    def files(self, folder: str = "") -> list[Path]:
        """The finished files: those with # are being written."""
        return sorted(path for path in (self.root / folder).rglob("*") if path.is_file() and "#" not in path.name)


@pytest.fixture
def stocked(tmp_path: Path) -> Stocked:
    """The store of the test's directory, with keys beside it."""
    return Stocked.at(tmp_path / "store")


def action(number: int) -> Action:
    graph = sha256(b"%d" % number).hexdigest()
    return Action(1, "build", graph, {"fast_math": False}, "", 1, {"kind": "cpu", "features": ["avx"]})


async def problem(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """What an attempt is told of its crash."""
    return document


def counted(*kinds: str) -> int:
    """How many entries of the store this process has met that were of no use, of these kinds."""
    name = "kiln_cache_corrupt_total"
    return round(sum(REGISTRY.get_sample_value(name, {"kind": kind}) or 0.0 for kind in kinds))


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))
