"""What was compiled or fetched before is had again without a service, also by a client that asks none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from service.trust.keyring import Keyring
from tensorkiln import AsyncClient, Client, compiler_build
from tensorkiln.artifacts import ArtifactCache
from tensorkiln.build import Builder
from tensorkiln.compiler_build import PARTS, Build, build
from tensorkiln.embedded import embedded_service
from tensorkiln.errors import NotFoundError, RequestError, TensorkilnError
from tensorkiln.graph import Graph
from tensorkiln.immediate import run
from tests.sdk.conftest import Connect
from tests.sdk.scripted import ScriptedServer
from tests.service.bodies import V3, graph


def doubled(size: int = 4) -> Graph:
    b = Builder("doubled")
    x = b.input("float32", (size,))
    b.output(x + x)
    return b.graph()


@pytest.fixture(scope="module")
def kept(embedding: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home where one graph was compiled, by a service that has ended, and the keys of that which its user knows."""
    folder = tmp_path_factory.mktemp("kept")
    with (
        mock.patch.dict(os.environ, KILN_CONFIG_DIR=str(folder / "config")),
        Client(cache_dir=folder / "home") as client,
    ):
        client.compile(doubled())
    embedded_service(folder / "home", 60.0).stop()
    shutil.copytree(folder / "home", folder / "as it was")
    return folder


@pytest.fixture
def home(kept: Path, tmp_path: Path) -> Iterator[Path]:
    """That home as it was, where it was, and what its user knows; a service of it ends with the test."""
    shutil.rmtree(kept / "home")
    shutil.copytree(kept / "config", tmp_path / "config")
    yield shutil.copytree(kept / "as it was", kept / "home")
    embedded_service(kept / "home", 60.0).stop()


def is_running(home: Path) -> bool:
    return embedded_service(home, 60.0).pid is not None


def test_a_program_that_is_kept_starts_no_service(home: Path) -> None:
    with Client(cache_dir=home) as client:
        program = client.compile(doubled())
        assert not is_running(home)
        assert program.compiled.cache.status == "hit"
        np.testing.assert_array_equal(program(np.ones(4, np.float32))[0], [2, 2, 2, 2])
        client.compile(doubled(5))
        assert is_running(home)


def test_keys_that_were_asked_for_long_ago_start_no_service(home: Path) -> None:
    with mock.patch("tensorkiln.trust.service_keys.REFRESH_S", -1.0), Client(cache_dir=home) as client:
        client.compile(doubled())
    assert not is_running(home)


def revoke(keys: Keyring) -> None:
    keys.revoke(keys.signer().kid)


def unlink(paths: Iterable[Path]) -> None:
    for path in [*paths]:
        path.unlink()


OTHER_BUILD = Build("0" * 64, build().versions)
CHANGES: dict[str, Callable[[Path, pytest.MonkeyPatch], object]] = {
    "the build": lambda home, patch: patch.setattr("tensorkiln.sdk.connection.build", lambda: OTHER_BUILD),
    "its records": lambda home, patch: [path.write_bytes(b"{}") for path in (home / "records").iterdir()],
    "its programs": lambda home, patch: unlink([*(home / "programs").iterdir(), *(home / "artifacts").iterdir()]),
    "the validity of its key": lambda home, patch: revoke(Keyring(home / "keys")),
    "its key": lambda home, patch: unlink((home / "keys").glob("*.jwk")),
}


@pytest.mark.parametrize("changed", CHANGES)
def test_kept_programs_are_requested_again(home: Path, monkeypatch: pytest.MonkeyPatch, changed: str) -> None:
    CHANGES[changed](home, monkeypatch)
    with Client(cache_dir=home) as client:
        program = client.compile(doubled())
        assert is_running(home)
        np.testing.assert_array_equal(program(np.ones(4, np.float32))[0], [2, 2, 2, 2])


def test_dumps_are_asked_of_a_service(home: Path) -> None:
    with Client(cache_dir=home) as client:
        digests = {client.compile(doubled(), options={"dump_stages": True}).compiled.digest for _ in range(2)}
        assert is_running(home)
        assert "kiln.binop" in client.stage(digests.pop(), "decompose")


def test_a_graph_that_is_none_is_refused_as_the_service_does(home: Path) -> None:
    with Client(cache_dir=home) as client:
        client.compile(doubled())
        assert not is_running(home)
        broken = doubled().model_copy(update={"output_vars": (77,)})
        for graph in (broken, {"schema": 1}, '{"nodes": 3}', b"no JSON"):
            with pytest.raises(TensorkilnError):
                client.compile(graph)


CALLS: dict[str, Callable[[Any], Any]] = {
    "compile": lambda client: client.compile(graph(), V3),
    "stored": lambda client: client.stored(graph(), V3),
    "explain": lambda client: client.explain(graph(), V3),
    "validate": lambda client: client.validate(graph()),
    "stage": lambda client: client.stage("0" * 64, "parse"),
    "artifact": lambda client: client.artifact("0" * 64),
    "signature": lambda client: client.signature("0" * 64),
    "capabilities": lambda client: client.capabilities(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_offline_calls_are_refused(scripted: ScriptedServer, connect: Connect, call: Callable[[Any], Any]) -> None:
    scripted.answers_with()
    with pytest.raises(NotFoundError, match="offline"):
        call(connect(scripted.url, offline=True))
    assert scripted.received == []


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_client_says_whether_it_is_offline(kind: type[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert not kind(cache_dir=tmp_path).offline
    monkeypatch.setenv("KILN_OFFLINE", "1")
    assert kind(cache_dir=tmp_path).offline
    assert not kind(cache_dir=tmp_path, offline=False).offline
    assert kind.offline.__doc__ == Client.offline.__doc__


def test_no_service_is_started_for_a_client_that_is_offline(tmp_path: Path) -> None:
    with Client(cache_dir=tmp_path, offline=True) as client, pytest.raises(NotFoundError, match="offline"):
        client.capabilities()
    assert embedded_service(tmp_path, 60.0).pid is None


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("other", ["0.0.1", None])
def test_another_version_is_another_build(part: str, other: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def elsewhere(distribution: str) -> str:
        if distribution != part:
            return version(distribution)
        if other is None:
            raise PackageNotFoundError(distribution)
        return other

    here = build.__wrapped__()
    monkeypatch.setattr(compiler_build, "version", elsewhere)
    there = build.__wrapped__()
    assert "nvidia-nvjitlink" in there.versions
    assert there.versions[part] == other or (other is None and there.versions[part] == "absent")
    assert (there.build_id == here.build_id) == (there.versions == here.versions)
    assert there.versions != here.versions or here.versions[part] == "absent"


DATA = b"an object file"
DIGEST = sha256(DATA).hexdigest()


class Origin:
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
