"""What is stored is either whole and true, or not there."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest
from obstore.store import MemoryStore

from service.identity.caller import LOCAL, acting_as
from service.store.blobs import Blobs
from service.store.location import Bucket, open_store
from service.store.records import Records
from service.store.repeats import Repeat, Repeats
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from service.wire.body import Body
from tensorkiln.errors import UnavailableError
from tests.service.house import bodies_in

CONTENT = [bytes([index]) * (1000 * index) for index in range(8)]


def sha(content: bytes) -> str:
    return sha256(content).hexdigest()


def blob_file(root: Path, digest: str) -> Path:
    return root / "blobs" / digest[:2] / digest


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def notary_in(directory: Path) -> Notary:
    return Notary(Keyring(directory / "keys"), "here", "process")


DAMAGES: list[Callable[[Path], None]] = [flip, truncate, Path.unlink]


@pytest.mark.parametrize("location", ["", "memory:///"])
async def test_a_blob_comes_back_under_its_digest(tmp_path: Path, location: str) -> None:
    blobs = Blobs(open_store(location or str(tmp_path)))
    for content in CONTENT:
        assert await blobs.put(content) == sha(content)
        assert await blobs.get(sha(content)) == content
    assert await blobs.holds(map(sha, CONTENT))
    assert await blobs.get(sha(b"other")) is None
    assert not await blobs.holds([sha(CONTENT[0]), sha(b"other")])


async def test_a_bucket_is_asked_for_several_blobs_at_once() -> None:
    store = MemoryStore()
    asked: list[str] = []

    class Slow:
        """Answers nobody before it is asked by as many as there are blobs."""

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def head_async(self, path: str) -> Any:
            asked.append(path)
            while len(asked) < len(CONTENT):
                await asyncio.sleep(0)
            return await store.head_async(path)

    for content in CONTENT:
        await Blobs(Bucket(store)).put(content)
    async with asyncio.timeout(10):
        assert await Blobs(Bucket(cast(Any, Slow()))).holds(map(sha, CONTENT))


@pytest.mark.parametrize("durable", [False, True])
async def test_a_store_that_is_gone_is_made_again_for_its_owner_alone(tmp_path: Path, durable: bool) -> None:
    root = tmp_path / "store"
    records = Records(open_store(str(root)))
    await records.put("graphs/ab/g", {}, durable=durable)
    shutil.rmtree(root)
    await records.put("graphs/ab/g", {}, durable=durable)
    assert await records.get("graphs/ab/g") is not None
    assert stat.S_IMODE(root.stat().st_mode) == 0o700


async def test_records_are_listed_by_name(tmp_path: Path) -> None:
    records = Records(open_store(str(tmp_path)))
    assert await records.names("graphs/ab/g", 10) == []
    for name in ("b", "a", "c"):
        await records.put(f"graphs/ab/g/{name}", {})
    assert await records.names("graphs/ab/g", 2) == ["a", "b"]


async def answer_of(repeats: Repeats, key: str) -> bytes | None:
    found = await repeats.find(key)
    return found.answer if found is not None else None


async def test_an_answer_is_repeated_while_everything_that_it_names_is_there(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    records, blobs, notary = Records(store), Blobs(store), notary_in(tmp_path)
    repeats = Repeats(records, blobs, "build 1", 1 << 20, notary)
    key = repeats.key(sha(b"body"))
    assert await repeats.find(key) is None
    named = await blobs.put(b"artifact")
    await repeats.save(key, Repeat(b"answer", (named,), isolation="process"))
    assert await answer_of(repeats, key) == b"answer"
    assert await answer_of(Repeats(records, blobs, "build 1", 0, notary), key) == b"answer"
    other = Repeats(records, blobs, "build 2", 1 << 20, notary)
    assert await other.find(other.key(sha(b"body"))) is None
    flip(blob_file(tmp_path, named))
    assert await repeats.find(key) is None
    await blobs.put(b"artifact")
    assert await answer_of(repeats, key) == b"answer"


async def test_answers_in_memory_are_bounded(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    repeats = Repeats(Records(store), Blobs(store), "", 2500, notary_in(tmp_path))
    for name in "abcd":
        await repeats.save(repeats.key(name), Repeat(name.encode() * 1000, isolation="process"))
    assert all([await answer_of(repeats, repeats.key(name)) == name.encode() * 1000 for name in "abcd"])


def test_a_store_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for location in (str(tmp_path / "file" / "store"), "http://127.0.0.1:9/", "nonsense://x"):
        with pytest.raises(UnavailableError):
            open_store(location)


async def test_a_folder_of_blobs_that_cannot_be_looked_into_makes_the_store_unavailable(tmp_path: Path) -> None:
    blobs = Blobs(open_store(str(tmp_path)))
    digest = await blobs.put(b"content")
    shutil.rmtree(blob_file(tmp_path, digest).parent)
    blob_file(tmp_path, digest).parent.write_bytes(b"")
    for failing in (blobs.holds([digest]), blobs.get(digest), blobs.put(b"content")):
        with pytest.raises(UnavailableError, match="Not a directory"):
            await failing


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
async def test_special_files_in_the_store_are_no_records(tmp_path: Path, make: Callable[[Path], None]) -> None:
    records = Records(open_store(str(tmp_path)))
    await records.put("a/b", {"n": 1})
    (tmp_path / "a" / "b").unlink()
    make(tmp_path / "a" / "b")
    assert await asyncio.wait_for(records.get("a/b"), 20) is None
    assert not await records.create("a/b", {"n": 2})


async def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    records = Records(open_store(str(tmp_path)))
    (tmp_path / "a" / "b").mkdir(parents=True)
    with pytest.raises(UnavailableError, match="does not take a record"):
        await records.put("a/b", {"n": 1})
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]
    (tmp_path / "c").touch()
    with pytest.raises(UnavailableError, match="does not take a record"):
        await records.put("c/d", {"n": 1})


SENT = b'{"graph":{}}'
BODY = Body(SENT, sha256(SENT).hexdigest())
ONE, OTHER = (replace(LOCAL, tenant=name) for name in ("one", "other"))


async def test_a_body_of_two_tenants_is_stored_twice(tmp_path: Path) -> None:
    stored = bodies_in(open_store(str(tmp_path)))
    digests: list[str] = []
    for who in (ONE, OTHER, ONE):
        with acting_as(who):
            digests.append(await stored.put(BODY, durable=False))
            assert await stored.get(digests[-1]) == BODY
    assert digests[0] == digests[2]
    assert len({*digests, BODY.digest}) == 3


async def test_a_body_that_was_stored_as_it_is_comes_back(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    digest = await Blobs(store).put(SENT)
    with acting_as(ONE):
        assert await bodies_in(store).get(digest) == BODY
