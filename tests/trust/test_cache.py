"""What a client keeps lets it run without its service, is verified when it is read, and stays within its bound."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from tensorkiln import Client, Graph
from tensorkiln.artifacts import ArtifactCache
from tensorkiln.cache import LocalCache
from tensorkiln.errors import NotFoundError, RequestError, TensorkilnError, UntrustedArtifactError
from tensorkiln.immediate import inline, run
from tensorkiln.options import CompileOptions
from tensorkiln.target import Target
from tensorkiln.trust.programs import Sources, TrustedPrograms
from tensorkiln.trust.question import Question
from tensorkiln.trust.service_keys import ServiceKeys
from tensorkiln.user_directories import user_cache_directory, user_config_directory
from tests.service.bodies import graph
from tests.service.server import Server
from tests.service.test_store import flip, truncate
from tests.trust.conftest import AtOnce
from tests.trust.forgery import fresh_key
from tests.trust.stores import age

X = np.arange(8, dtype=np.float32).reshape(4, 2)


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The URL of a service that is there no more, and the place of a client for which it compiled `small`."""
    place = tmp_path_factory.mktemp("left")
    with pytest.MonkeyPatch.context() as environment, Server(place / "server") as server:
        environment.setenv("KILN_CONFIG_DIR", str(place / "config"))
        with Client(server.url, cache_dir=place / "mine") as client:
            client.compile(Graph.model_validate(graph()))
            client.compile_for(Graph.model_validate(graph("sqrt")), ["cpu:x86-64-v3"])
        return server.url, place


@pytest.fixture
def gone(tmp_path: Path, left: tuple[str, Path]) -> str:
    """The URL of a service that is there no more; what a client keeps of it is in `mine` and `config`."""
    url, place = left
    for folder in ("mine", "config"):
        shutil.copytree(place / folder, tmp_path / folder)
    return url


def test_a_program_that_was_loaded_before_runs_without_its_service(gone: str, small: Graph, tmp_path: Path) -> None:
    with Client(gone, cache_dir=tmp_path / "mine", offline=True) as client:
        program = client.compile(small)
        np.testing.assert_array_equal(program(X, n=2)[1], -X)
        assert program.compiled.cache.reason == "kept by this client"
        renamed = Graph.model_validate(graph(name="other", symbol="batch", first_var=30, reverse=True))
        np.testing.assert_array_equal(client.compile(renamed)(X, batch=2)[1], -X)
        assert client.program(program.compiled.digest).compiled.digest == program.compiled.digest


def test_a_variable_means_offline(gone: str, small: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KILN_OFFLINE", "1")
    monkeypatch.setenv("KILN_CACHE_DIR", str(tmp_path / "mine"))
    with Client(gone) as client:
        np.testing.assert_array_equal(client.compile(small)(X, n=2)[1], -X)
    monkeypatch.setenv("KILN_OFFLINE", "perhaps")
    with pytest.raises(RequestError, match="KILN_OFFLINE"):
        Client(gone)
    monkeypatch.setenv("KILN_OFFLINE", "0")
    monkeypatch.setenv("KILN_CACHE_MIB", "much")
    with pytest.raises(RequestError, match="KILN_CACHE_MIB"):
        Client(gone)


def test_missing_programs_are_named_offline(gone: str, small: Graph, tmp_path: Path) -> None:
    with Client(gone, cache_dir=tmp_path / "mine", offline=True) as client:
        with pytest.raises(NotFoundError, match="The cache has no program of this graph for"):
            client.compile(Graph.model_validate(graph("sin")))
        with pytest.raises(NotFoundError, match="The cache has no program of this graph for"):
            client.compile(small, options={"fast_math": True})
        (compiled,) = client.compile_for(Graph.model_validate(graph("sqrt")), ["cpu:x86-64-v3"])
        with pytest.raises(NotFoundError, match=r"artifact .* not kept"):
            client.load(compiled)
        with pytest.raises(NotFoundError, match="not kept"):
            client.program("0" * 64)
    with Client(gone + "/elsewhere", cache_dir=tmp_path / "mine", offline=True) as client, pytest.raises(NotFoundError):
        client.compile(small)


@pytest.mark.parametrize("damage", [flip, truncate, Path.unlink])
@pytest.mark.parametrize("folder", ["artifacts", "programs", "records"])
def test_damaged_cache_entries_are_not_run(
    gone: str, small: Graph, tmp_path: Path, folder: str, damage: Callable[[Path], None]
) -> None:
    for path in (tmp_path / "mine" / folder).iterdir():
        damage(path)
    with (
        Client(gone, cache_dir=tmp_path / "mine", offline=True) as client,
        pytest.raises((NotFoundError, UntrustedArtifactError)),
    ):
        client.compile(small)


def test_signatures_are_verified_offline_too(gone: str, small: Graph, tmp_path: Path) -> None:
    def mine(**demands: Any) -> Client:
        return Client(gone, cache_dir=tmp_path / "mine", offline=True, **demands)

    for refused in (
        mine(trusted_keys=[fresh_key().x]),
        mine(min_isolation="external"),
    ):
        with refused, pytest.raises(UntrustedArtifactError):
            refused.compile(small)
    for path in (tmp_path / "config" / "services").iterdir():
        path.unlink()
    with mine() as client, pytest.raises(UntrustedArtifactError) as unknown:
        client.compile(small)
    assert unknown.value.details["reason"] == "unknown_key"


def test_the_least_recently_used_files_go_first(tmp_path: Path) -> None:
    cache = LocalCache(tmp_path, 1000)
    for number, name in enumerate("abcd"):
        cache.write(name, b"x" * 250)
        os.utime(tmp_path / name, (number, number))
    assert cache.read("a") is not None
    cache.write("e", b"x" * 250)
    assert {path.name for path in tmp_path.iterdir()} == {"a", "c", "d", "e"}
    cache.write("large", b"x" * 1001)
    assert cache.read("large") is None


def test_many_small_files_stay_near_the_maximum(tmp_path: Path) -> None:
    cache = LocalCache(tmp_path, 10_000)
    for number in range(3000):
        cache.write(str(number), b"x" * 10)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 15_000


def test_a_file_that_a_killed_process_left_is_cleared_away_in_time(tmp_path: Path) -> None:
    cache = LocalCache(tmp_path, 200)
    for name, seconds in ((".new-old", 7200), (".new-young", 0)):
        (tmp_path / name).write_bytes(b"half")
        age(tmp_path / name, seconds)
    cache.write("a", b"whole")
    assert {path.name for path in tmp_path.iterdir()} == {"a", ".new-young"}


def test_several_processes_share_a_cache_that_is_too_small_for_them(at_once: AtOnce, tmp_path: Path) -> None:
    script = """
import sys
from hashlib import sha256
from pathlib import Path
from tensorkiln.artifacts import ArtifactCache
from tensorkiln.immediate import run
contents = {sha256(data).hexdigest(): data for data in (b"%d " % n * 5000 for n in range(30))}
async def fetch(digest):
    return contents[digest]
for turn in range(3):
    cache = ArtifactCache(fetch, Path(sys.argv[1]), disk_bytes=200_000)
    for digest, data in contents.items():
        assert run(cache.get(digest)) == data
"""
    at_once(script, 4, str(tmp_path / "shared"))
    assert sum(path.stat().st_size for path in (tmp_path / "shared").iterdir()) <= 200_000


def test_files_lie_where_the_system_has_them(tmp_path: Path) -> None:
    home = Path.home()
    assert user_cache_directory({}, "linux") == home / ".cache" / "kiln"
    assert user_cache_directory({"XDG_CACHE_HOME": "/c"}, "linux") == Path("/c/kiln")
    assert user_cache_directory({"XDG_CACHE_HOME": "relative"}, "linux") == home / ".cache" / "kiln"
    assert user_cache_directory({}, "darwin") == home / "Library/Caches/kiln"
    assert user_cache_directory({}, "win32") == home / "AppData/Local/kiln"
    assert user_config_directory({"XDG_CONFIG_HOME": "/c"}, "linux") == Path("/c/kiln")
    assert user_config_directory({}, "darwin") == home / "Library/Application Support/kiln"
    assert issubclass(NotFoundError, TensorkilnError)


async def fetch(_: str) -> NoReturn:
    raise AssertionError("a client that is offline fetches nothing")


@pytest.mark.parametrize(
    "damaged",
    [b"", b"?" * 100_000, b"A" * 64, b"a" * 63, b"a" * 64 + b"\n", b"\xff" * 64],
    ids=["empty", "long", "capitals", "short", "line", "bytes"],
)
def test_a_damaged_pointer_is_removed_and_not_repeated(small: Graph, tmp_path: Path, damaged: bytes) -> None:
    kept = LocalCache(tmp_path / "records", 1 << 20)
    keys = ServiceKeys("a service", None, tmp_path, pins=(), is_private=False)
    programs = TrustedPrograms("a service", keys, "process", Sources(None, ArtifactCache(fetch), kept, inline))
    target = Target.parse("cpu:x86-64-v3")
    question = Question.of(small, [target], CompileOptions())
    with pytest.raises(NotFoundError) as never:
        run(programs.kept(question))
    name = sha256(f"a service\nquestion {question.key(target)}".encode()).hexdigest()
    kept.write(name, damaged)
    with pytest.raises(NotFoundError) as caught:
        run(programs.kept(question))
    assert caught.value.message == never.value.message
    assert kept.read(name) is None
