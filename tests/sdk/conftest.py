from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tensorkiln import Client, Graph
from tensorkiln.build import Builder, relu
from tests.forked import Forked
from tests.identity.guarded import Guarded
from tests.sdk.hung import hung_server
from tests.sdk.scripted import ScriptedServer
from tests.service.server import Server

HERE = Path(__file__).parent
Kiln = Callable[..., "subprocess.CompletedProcess[str]"]
COMMANDS = (
    "app",
    "compile",
    "compile_all.command",
    "run",
    "tune",
    "validate",
    "explain",
    "bench",
    "convert",
    "list_targets",
    "doctor",
    "report_page",
    "mcp",
)
# What commands load when they have come so far.
LATER = (
    *("tensorkiln.connections", "tensorkiln.runtime.executor", "httpcore2", "typer.rich_utils", "rich.markdown"),
    *("llvmlite.binding", "numpy.random", "cryptography.hazmat.primitives.asymmetric.ed25519"),
    *(
        "anyio._backends._asyncio",
        "tensorkiln.sdk.async_job",
        "tensorkiln.trust.connected",
        "encodings.idna",
        "stringprep",
    ),
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


class RemoteService:
    """A service on a port of the loopback, run as an operator runs it."""

    def __init__(self, home: Path) -> None:
        command = [sys.executable, "-m", "tensorkiln.cli", "serve", "--port", "0"]
        environment = {**os.environ, "KILN_HOME": str(home)}
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self._process.stdout is not None
        ready = re.search(r"http://\S+", self._process.stdout.readline())
        assert ready is not None
        self.url = ready[0]

    def stop(self) -> int:
        """The exit code after SIGTERM."""
        self._process.terminate()
        self._process.communicate(timeout=60)
        return self._process.returncode


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[RemoteService]:
    """A service of the test's own."""
    service = RemoteService(tmp_path / "server")
    yield service
    service.stop()


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


@pytest.fixture
def client(home: Path) -> Iterator[Client]:
    """A client of the embedded service."""
    with Client(cache_dir=home) as client:
        yield client


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
    with Forked(*(f"tensorkiln.cli.{name}" for name in COMMANDS), *LATER) as forked:
        yield forked


@pytest.fixture
def kiln(tmp_path: Path, served: str, forked: Forked) -> Kiln:
    """Runs `kiln` in the test's directory, by a running service unless `url` is empty."""

    def run(*arguments: str, url: str = served) -> subprocess.CompletedProcess[str]:
        environment = {"KILN_URL": url, "KILN_HOME": str(tmp_path / "home"), "COLUMNS": "200", "NO_COLOR": "1"}
        return forked.run("tensorkiln.cli", *arguments, cwd=tmp_path, env={**os.environ, **environment})

    return run


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
