"""Whatever is damaged is never served, is counted, and can be made again; writers may be killed and be many."""

from __future__ import annotations

import asyncio
import os
import time
from hashlib import sha256
from math import ceil
from pathlib import Path

import pytest

from service.store.programs import Entry, Miss
from service.upkeep.scrub import scrub
from tests.faults.size import figures, sized
from tests.forked import Forked
from tests.service.test_store import DAMAGES
from tests.trust.conftest import AtOnce
from tests.trust.stores import Stocked, age, counted

pytestmark = pytest.mark.faults
ENTRIES = sized(120, 1000)
PROCESSES = sized(8, 64)


async def test_no_damage_to_any_blob_or_record_is_served_and_all_of_it_heals(stocked: Stocked) -> None:
    count = ceil(ENTRIES / 3)
    actions = [await stocked.save(number) for number in range(count)]
    before, damaged, flipped = counted("blob", "record"), 0, 0
    for number, wanted in enumerate(actions):
        found = await stocked.programs.find(wanted, with_dumps=False)
        assert isinstance(found, Entry)
        own = [stocked.root / "blobs" / digest[:2] / digest for digest in found.blobs[:2]]
        for path in (stocked.path(wanted), *own):
            DAMAGES[damaged % 3](path)
            flipped += damaged % 3 < 2
            damaged += 1
            assert isinstance(await stocked.programs.find(wanted, with_dumps=False), Miss)
            assert not await stocked.is_whole(wanted)
            await stocked.save(number)
            assert await stocked.is_whole(wanted)
    assert damaged == 3 * count
    # A flip or a truncation is met once and counted once; what is gone leaves nothing to count.
    assert counted("blob", "record") - before == flipped
    assert (await scrub(stocked.store, stocked.notary)).is_clean
    figures("damage", healed=damaged, of=3 * count, counted=flipped)


WRITER = """
import asyncio, sys
from pathlib import Path
from tests.trust.stores import Stocked
async def main():
    stocked = Stocked.at(Path(sys.argv[1]))
    print("begin", flush=True)
    for begin in range(0, 1_000_000, 250):
        await asyncio.gather(*(stocked.save(begin + number, 20_000) for number in range(250)))
asyncio.run(main())
"""


def test_killed_writers_leave_nothing_partial(forked: Forked, stocked: Stocked, tmp_path: Path) -> None:
    stocked.notary.sealed("answer", "", {})
    (tmp_path / "writer.py").write_text(WRITER)
    for programs in (1, 60, 200):
        process = forked.start("writer", str(stocked.root), cwd=tmp_path, env=os.environ, stderr=2)
        assert process.stdout is not None
        assert process.stdout.readline() == "begin\n"
        while len(stocked.files("blobs")) < programs:
            time.sleep(0.005)
        process.kill()
        process.wait()
        process.stdout.close()
        assert all(sha256(path.read_bytes()).hexdigest() == path.name for path in stocked.files("blobs"))
    for unfinished in stocked.root.rglob("*#*"):
        age(unfinished, 7200)
    report = asyncio.run(scrub(stocked.store, stocked.notary))
    assert report.is_clean
    assert not list(stocked.root.rglob("*#*"))


READER_AND_WRITER = """
import asyncio, os, sys
from pathlib import Path
from tests.trust.stores import Stocked, counted
async def main():
    stocked = Stocked.at(Path(sys.argv[1]))
    for number in range(12):
        wanted = await stocked.save(number)
        assert await stocked.is_whole(wanted)
    assert counted("blob", "record", "program", "answer") == 0
asyncio.run(main())
# The store's library aborts the process, now and then, when the interpreter is taken down under its threads.
os._exit(0)
"""


def test_many_processes_share_a_directory(at_once: AtOnce, stocked: Stocked, capfd: pytest.CaptureFixture[str]) -> None:
    at_once(READER_AND_WRITER, PROCESSES, str(stocked.root))
    assert capfd.readouterr().err == ""
    assert asyncio.run(scrub(stocked.store, stocked.notary)).is_clean
