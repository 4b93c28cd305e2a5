from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from tensorkiln.artifacts import ArtifactCache
from tensorkiln.errors import RequestError
from tensorkiln.immediate import run

DATA = b"an object file"
DIGEST = sha256(DATA).hexdigest()


class Origin:
    """Serves the bytes it was given by their digest, and counts."""

    def __init__(self, *blobs: bytes) -> None:
        self.blobs = {sha256(blob).hexdigest(): blob for blob in blobs}
        self.served: list[str] = []

    async def __call__(self, digest: str) -> bytes:
        self.served.append(digest)
        return self.blobs[digest]


@pytest.mark.parametrize("data", [DATA, b""])
def test_an_artifact_is_fetched_once_a_process(data: bytes) -> None:
    origin, digest = Origin(data), sha256(data).hexdigest()
    cache = ArtifactCache(origin)
    assert run(cache.get(digest)) == run(cache.get(digest)) == data
    assert origin.served == [digest]


def test_an_artifact_on_disk_is_not_fetched_again(tmp_path: Path) -> None:
    origin = Origin(DATA)
    run(ArtifactCache(origin, tmp_path / "artifacts").get(DIGEST))
    assert run(ArtifactCache(origin, tmp_path / "artifacts").get(DIGEST)) == DATA
    assert origin.served == [DIGEST]
    assert [path.name for path in (tmp_path / "artifacts").iterdir()] == [DIGEST]


@pytest.mark.parametrize("damaged", [b"", DATA[:-1], DATA[:-1] + b"x"])
def test_a_damaged_file_is_fetched_again_and_healed(tmp_path: Path, damaged: bytes) -> None:
    origin = Origin(DATA)
    (tmp_path / DIGEST).write_bytes(damaged)
    assert run(ArtifactCache(origin, tmp_path).get(DIGEST)) == DATA
    assert origin.served == [DIGEST]
    assert (tmp_path / DIGEST).read_bytes() == DATA


def test_a_directory_that_cannot_be_used_slows_nothing_but_the_next_process(tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.write_bytes(b"")
    origin = Origin(DATA)
    assert run(ArtifactCache(origin, occupied).get(DIGEST)) == DATA
    assert run(ArtifactCache(origin, occupied).get(DIGEST)) == DATA
    assert origin.served == [DIGEST, DIGEST]


@pytest.mark.parametrize("name", ["", "../../etc/passwd", DIGEST.upper(), DIGEST + "\n", DIGEST[1:]])
def test_only_a_sha256_names_an_artifact(tmp_path: Path, name: str) -> None:
    with pytest.raises(RequestError, match="SHA-256"):
        run(ArtifactCache(Origin(DATA), tmp_path).get(name))


def test_memory_is_bounded_and_the_least_recently_used_goes_first() -> None:
    first, second, third = b"a" * 10, b"b" * 10, b"c" * 10
    digests = [sha256(blob).hexdigest() for blob in (first, second, third)]
    origin = Origin(first, second, third)
    cache = ArtifactCache(origin, memory_bytes=20)
    for digest in (digests[0], digests[1], digests[0], digests[2], digests[0]):
        run(cache.get(digest))
    assert origin.served == digests
    run(cache.get(digests[1]))
    assert origin.served == [*digests, digests[1]]
