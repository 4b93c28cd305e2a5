"""What one build of the compiler made can be taken out of a store, and nothing else goes with it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from service.action import Action
from service.store.programs import Entry
from service.store.repeats import Repeat
from service.upkeep.purge import Purged, build_data, purge
from service.upkeep.scrub import scrub
from tests.trust.conftest import Ran, Scrubbed
from tests.trust.stores import Stocked, action

GOOD, BAD = "a" * 64, "b" * 64


async def made(stocked: Stocked, number: int, build: str) -> Action:
    """A program of a build, with an artifact that all have, an answer, and a job that came to it."""
    wanted = replace(action(number), build_id=build)
    told = json.dumps({"number": number, "provenance": {"build_id": build}}).encode()
    program, shared = await stocked.blobs.put(told), await stocked.blobs.put(b"shared")
    await stocked.programs.save(wanted, Entry(program, (shared,)))
    stocked.nearest.add(wanted, "")
    await stocked.nearest.settle()
    answer = b'{"programs":[%s]}' % told
    await stocked.repeats.save(
        stocked.repeats.key(wanted.digest), Repeat(answer, (program, shared), (wanted.digest,), isolation="process")
    )
    job = wanted.digest[:32]
    ended = {"id": job, "state": "done", "answer": await stocked.blobs.put(answer + b"\n")}
    await stocked.records.put(f"jobs/ended/{job[:2]}/{job}", ended)
    return wanted


async def is_there(stocked: Stocked, wanted: Action) -> list[bool]:
    job = wanted.digest[:32]
    near = await stocked.nearest.to(wanted, "")
    return [
        await stocked.is_whole(wanted),
        await stocked.repeats.find(stocked.repeats.key(wanted.digest)) is not None,
        await stocked.records.get(f"jobs/ended/{job[:2]}/{job}") is not None,
        near is not None and near.digest == wanted.digest,
    ]


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_all_of_a_build_goes_and_all_of_another_stays(scrubbed: Scrubbed, stocked: Stocked, is_forgotten: bool) -> None:
    async def fill() -> tuple[Action, Action]:
        await made(stocked, 3, BAD)
        bad, good = await made(stocked, 1, BAD), await made(stocked, 2, GOOD)
        if is_forgotten:  # the program was evicted, and its answer was not
            await stocked.records.delete(str(stocked.path(bad).relative_to(stocked.root)))
        stocked.age("blobs")
        return bad, good

    bad, good = asyncio.run(fill())
    before = stocked.files()
    purged = {"programs": 1 if is_forgotten else 2, "answers": 2, "jobs": 2, "crashes": 0, "rights": 0}
    status, report = scrubbed("--purge-build", BAD, "--dry-run")
    assert (status, report["purged"], report["evicted"]) == (0, purged, None)
    assert stocked.files() == before
    status, report = scrubbed("--purge-build", BAD)
    assert (status, report["purged"]) == (0, purged)
    # A program, its answer, and that of its job; what others share with it stays.
    assert report["evicted"]["blobs"] == 2 * 3
    assert not any(BAD.encode() in path.read_bytes() for path in stocked.files())
    assert asyncio.run(is_there(stocked, bad)) == [False] * 4
    assert asyncio.run(is_there(stocked, good)) == [True] * 4
    assert asyncio.run(scrub(stocked.store, stocked.notary)).is_clean
    assert scrubbed("--purge-build", BAD)[1]["purged"] == asdict(Purged())


async def test_what_nobody_believes_and_what_is_damaged_is_no_obstacle(stocked: Stocked) -> None:
    for number, signed in enumerate(("", "[]", '{"record":[]}', '{"record":{"build_id":1}}', [1], None)):
        await stocked.records.put(f"programs/ab/{number}", {"signed": signed})
    await stocked.records.put("programs/ab/x", {"signed": json.dumps({"record": {"build_id": BAD}})})
    await stocked.records.put("requests/ab/x", {"answer": "0" * 64, "blobs": ["1" * 64]})
    await stocked.records.put("requests/ab/y", {"answer": 5})
    await stocked.records.put("jobs/ended/ab/x", {"answer": ["../../keys"]})
    await stocked.records.put("crashes/ab/x", {"problem": {"details": {"reproducer": 5}}})
    (stocked.root / "programs/ab/torn").write_bytes(b"")
    assert await purge(stocked.store, build_data(BAD)) == Purged(programs=1)
    assert len(stocked.files("programs")) == 7


def test_a_build_is_named_in_full(ran: Ran, tmp_path: Path) -> None:
    ended = ran("service.upkeep.scrub", "--store", str(tmp_path), "--purge-build", "ab")
    assert ended.returncode == 2
    assert "64 hexadecimal digits" in ended.stderr
