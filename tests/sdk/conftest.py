from __future__ import annotations

import asyncio
import os
import re
import resource
import subprocess
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tensorkiln import AsyncClient, Client, Graph
from tensorkiln.build import Builder, relu
from tensorkiln.cli.app import _COMMANDS  # pyright: ignore[reportPrivateUsage]
from tensorkiln.sdk.async_job import AsyncJob
from tests.forked import Forked
from tests.identity.guarded import Guarded
from tests.sdk.hung import hung_server
from tests.sdk.scripted import ScriptedServer
from tests.service.forked import forked_embedding
from tests.service.server import Server

HERE = Path(__file__).parent
NOWHERE = "http://127.0.0.1:1"
Kiln = Callable[..., "subprocess.CompletedProcess[str]"]
Connect = Callable[..., Any]
COMMANDS = tuple(place.partition(":")[0] for name, place in _COMMANDS.items() if name != "serve")
# What commands load when they have come so far.
LATER = (
    *("tensorkiln.connections", "tensorkiln.runtime.executor", "httpcore2", "typer.rich_utils", "rich.markdown"),
    *("llvmlite.binding", "numpy.random", "cryptography.hazmat.primitives.asymmetric.ed25519", "encodings.idna"),
    *("anyio._backends._asyncio", "tensorkiln.sdk.async_job", "tensorkiln.trust.connected", "stringprep"),
)
SHARED = ("busy", "guarded", "home")


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One start of each of these services is enough: those who use it are few, or quick."""
    for item in items:
        used = [name for name in SHARED if item.path.parent == HERE and name in getattr(item, "fixturenames", ())]
        if used:
            item.add_marker(pytest.mark.xdist_group(f"sdk {used[0]}"))


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a service that the tests share."""
    service = Server(tmp_path_factory.mktemp("served"))
    yield service.url
    assert service.stop() == 0


@pytest.fixture(scope="package")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A service that asks for credentials, which the tests share."""
    with Guarded(tmp_path_factory.mktemp("guarded")) as running:
        yield running


@pytest.fixture(scope="package")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service whose jobs wait, which the tests share."""
    with hung_server(tmp_path_factory.mktemp("busy")) as server:
        yield server


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home directory of the one embedded service that the tests share."""
    return tmp_path_factory.mktemp("kiln-home")


@pytest.fixture(scope="module")
def embedding() -> Iterator[None]:
    """Embedded services of a module in which their start is not tested are forked."""
    with forked_embedding():
        yield


@pytest.fixture
def client(embedding: None, home: Path) -> Iterator[Client]:
    with Client(cache_dir=home) as client:
        yield client


class Waiting:
    """An `AsyncClient`, or a job of one, whose calls are waited for, as those of a `Client` are."""

    def __init__(self, awaited: Any, loop: asyncio.Runner) -> None:
        self._awaited, self._loop = awaited, loop

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def outcome(*arguments: Any, **named: Any) -> Any:
            found = getattr(self._awaited, name)(*arguments, **named)
            return [each async for each in found] if isinstance(found, AsyncIterator) else await found

        def call(*arguments: Any, **named: Any) -> Any:
            found = self._loop.run(outcome(*arguments, **named))
            return Waiting(found, self._loop) if isinstance(found, AsyncJob) else found

        return call


@pytest.fixture(params=["blocking", "async"])
def connect(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connect]:
    """Opens a client of a URL. Each test is run for both clients."""
    with ExitStack() as opened:

        def open(url: str, **settings: Any) -> Any:
            if request.param == "blocking":
                return opened.enter_context(Client(url, cache_dir=tmp_path, **settings))
            client, loop = AsyncClient(url, cache_dir=tmp_path, **settings), opened.enter_context(asyncio.Runner())
            opened.callback(lambda: loop.run(client.close()))
            return Waiting(client, loop)

        yield open


@pytest.fixture
def layer() -> Graph:
    """relu(x @ w) with x of n by 8 float32 and w of 8 by 3; 1 <= n <= 64."""
    b = Builder("layer")
    x, w = b.input("float32", (b.symbol("n", 1, 64), 8)), b.input("float32", (8, 3))
    b.output(relu(x @ w))
    return b.graph()


@pytest.fixture(scope="package")
def forked() -> Iterator[Forked]:
    """Runs `kiln` without loading it each time."""
    with Forked("tensorkiln.cli.app", *(f"tensorkiln.cli.{name}" for name in COMMANDS), *LATER) as forked:
        yield forked


def no_time_at(url: str) -> dict[str, str]:
    """The variable by which a command does not ask again and again where there is no service."""
    return {"KILN_TIMEOUT_S": "1"} if url == NOWHERE else {}


@pytest.fixture
def kiln(tmp_path: Path, served: str, forked: Forked) -> Kiln:
    """Runs `kiln` in the test's directory, by a running service unless `url` is empty, with variables of its own.

    What it writes to another `stdout` is not read, and no file of it has more than `file_bytes`.
    """

    def run(
        *arguments: str,
        url: str = served,
        stdout: int = subprocess.PIPE,
        file_bytes: int = resource.RLIM_INFINITY,
        **variables: str,
    ) -> subprocess.CompletedProcess[str]:
        own = {"KILN_URL": url, "KILN_HOME": str(tmp_path / "home"), "COLUMNS": "200", "NO_COLOR": "1", **variables}
        env = {**os.environ, **own, **no_time_at(own["KILN_URL"])}
        return forked.run("tensorkiln.cli", *arguments, cwd=tmp_path, env=env, stdout=stdout, file_bytes=file_bytes)

    return run


PROGRESS = re.compile(r"^\d+ of \d+, \d+ hits, \d+ failed, the slowest took [\d.]+ s\n", re.MULTILINE)
"""How far a run is, which a machine that takes its time hears, and which is no complaint."""


@pytest.fixture
def kiln_all(kiln: Kiln, monkeypatch: pytest.MonkeyPatch) -> Kiln:
    """Runs `kiln compile-all`, whatever machine this is."""
    for name in [name for name in os.environ if name.startswith("GITHUB_")]:
        monkeypatch.delenv(name)

    def run(*arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
        done = kiln("compile-all", *arguments, **how)
        done.stderr = PROGRESS.sub("", done.stderr)
        return done

    return run


@contextmanager
def broken_pipe() -> Generator[int]:
    """A pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        yield writer
    finally:
        os.close(writer)


def succeeded(done: subprocess.CompletedProcess[str]) -> str:
    """What a command printed that did what it was asked for, and complained of nothing."""
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def complaint(done: subprocess.CompletedProcess[str], status: int) -> str:
    """What a command complained of that ended so."""
    assert done.returncode == status, done.stderr
    return done.stderr


def refusal(done: subprocess.CompletedProcess[str], status: int) -> str:
    """What a command complained of that ended so and printed nothing."""
    assert done.stdout == ""
    return complaint(done, status)


def one_line(done: subprocess.CompletedProcess[str], status: int) -> str:
    """The line that is all of what a command said that ended so."""
    said = refusal(done, status)
    assert said.count("\n") == 1
    return said


@pytest.fixture
def graph_file(tmp_path: Path, layer: Graph) -> Path:
    path = tmp_path / "layer.json"
    path.write_text(layer.to_json())
    return path


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KILN_CONFIG_DIR", str(tmp_path / "config"))
    for name in ("KILN_URL", "KILN_HOME", "KILN_TIMEOUT_S", "KILN_STARTUP_TIMEOUT_S"):
        monkeypatch.delenv(name, raising=False)
