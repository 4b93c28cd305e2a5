"""The SDK on other systems, as far as Linux can play them: `python -m tests.sdk.elsewhere URL FOLDER SYSTEM...`.

Modules, functions and signals that the system lacks are gone. What other distributions and Python itself import is
imported before: it is for them to know the system.
"""

from __future__ import annotations

import asyncio  # noqa: F401  # pyright: ignore[reportUnusedImport]
import importlib
import json
import os
import pathlib
import pkgutil
import signal
import socket
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

PRELOADED: Final = (
    *("concurrent.futures", "ctypes", "http.server", "logging", "multiprocessing", "selectors", "sqlite3", "zoneinfo"),
    *("cryptography.hazmat.primitives.asymmetric.ed25519", "cuda.bindings.driver", "flatbuffers", "httpx2", "numpy"),
    *("llvmlite.binding", "ml_dtypes", "msgspec", "onnx", "packaging.version", "pydantic", "rich.console"),
    *("rich.table", "subprocess", "typer.testing"),
)
OPTIONAL: Final = {"cuda", "flatbuffers", "jax", "jsonschema", "mcp", "mcp_types", "tinygrad", "torch"}
"""What an importer or a runtime needs beside the SDK, and says so when it is missing."""
NO_MODULES: Final = {
    "win32": {"fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"},
    "darwin": set[str](),
}
_NO_LINUX: Final = "sched_getaffinity sched_setaffinity memfd_create posix_fadvise splice eventfd pidfd_open"
_NO_POSIX: Final = (
    "fork forkpty register_at_fork killpg getpgrp getpgid setpgid setsid getuid geteuid getgid getegid chown fchown "
    "lchown uname getloadavg sysconf nice pread pwrite statvfs wait3 wait4 mkfifo fchmod "
    "O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK"
)
NO_NAMES: Final[dict[str, Sequence[tuple[ModuleType, str]]]] = {
    "win32": (
        (os, f"{_NO_LINUX} {_NO_POSIX}"),
        (signal, "SIGKILL SIGHUP SIGQUIT SIGPIPE SIGALRM SIGUSR1 SIGCHLD setitimer pthread_sigmask sigwait"),
        (socket, "AF_UNIX send_fds recv_fds"),
    ),
    "darwin": ((os, _NO_LINUX),),
}


class _Missing:
    def __init__(self, names: set[str]) -> None:
        self._names = names

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name in self._names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def preload() -> None:
    """Import what is not of the SDK, while this process looks like the system that it is on."""
    for name in PRELOADED:
        importlib.import_module(name)
    if find_spec("mcp") is not None:
        importlib.import_module("mcp.server.stdio")
    tempfile.gettempdir()


def become(system: str) -> None:
    """Have this process look like `system`, which is win32 or darwin."""
    for name in NO_MODULES[system]:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, _Missing(NO_MODULES[system]))
    if system == "win32":  # which makes pairs of its own
        socket.socketpair = partial(socket.socketpair, socket.AF_UNIX)
    for module, names in NO_NAMES[system]:
        for name in names.split():
            vars(module).pop(name, None)
    sys.platform = system
    if system == "win32":
        os.name = "nt"
        # A path object asks for the system when it is made.
        pathlib.WindowsPath = pathlib.PosixPath  # pyright: ignore[reportAttributeAccessIssue]


def import_everything() -> tuple[list[str], list[str]]:
    """The modules of the SDK that were imported, and what was missing for the others."""
    import tensorkiln

    imported: list[str] = []
    missing: set[str] = set()
    for found in pkgutil.walk_packages(tensorkiln.__path__, "tensorkiln.", onerror=lambda name: None):
        if found.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(found.name)
            imported.append(found.name)
        except ModuleNotFoundError as error:
            missing.add((error.name or "").partition(".")[0])
    return imported, sorted(missing - OPTIONAL)


def work(url: str, folder: pathlib.Path) -> dict[str, Any]:
    """Write a graph, import a model, compile both elsewhere, keep a bundle, and be told what this system cannot do."""
    from onnx import TensorProto, helper
    from typer.testing import CliRunner

    from tensorkiln import Client, Program
    from tensorkiln.build import Builder, relu
    from tensorkiln.bundle import read_bundle
    from tensorkiln.cli.app import app
    from tensorkiln.errors import TensorkilnError
    from tensorkiln.frontends import onnx as importer

    b = Builder("layer")
    x, w = b.input("float32", (b.symbol("n", 1, 64), 8)), b.input("float32", (8, 3))
    b.output(relu(x @ w))
    graph = b.graph()
    node = helper.make_node("Relu", ["x"], ["y"])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy"]
    model = importer.load(helper.make_model(helper.make_graph([node], "one", ends[:1], ends[1:])))
    said: dict[str, Any] = {}
    bundle = folder / "layer.kiln"
    with Client(url, cache_dir=folder / "home") as client:
        for each in (graph, model.graph):
            (program,) = client.compile_for(each, ["cpu:x86-64-v3"])
            said[program.name] = len(program.kernels)
            client.save(program, bundle)
    said["bundle"] = read_bundle(bundle).program.name
    for name, call in (
        ("run", lambda: Program.from_bundle(bundle)),
        ("embedded", lambda: Client(cache_dir=folder / "other").capabilities()),
    ):
        try:
            call()
        except TensorkilnError as error:
            said[name] = f"{type(error).__name__}: {error}"
    path = folder / "graph.json"
    path.write_text(graph.model_dump_json(), encoding="utf-8")
    runner = CliRunner()
    for words in (
        ["validate", str(path), "--url", url],
        ["compile", str(path), "--url", url, "--bundle", str(folder / "o.kiln"), "-t", "cuda:sm_90"],
    ):
        done = runner.invoke(app, words)
        said[words[0]] = [done.exit_code, done.output]
    said["serve"] = runner.invoke(app, ["serve"]).output
    return said


def main() -> None:
    """Print of each system what was imported, what was missing, and what the work came to: a line of JSON."""
    url, folder, *systems = sys.argv[1:]
    preload()
    for system in systems:
        child = os.fork()
        if child == 0:
            become(system)
            imported, missing = import_everything()
            own = pathlib.Path(folder) / system
            own.mkdir()
            print(json.dumps({"imported": imported, "missing": missing, **work(url, own)}), flush=True)
            return
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, system


if __name__ == "__main__":
    main()
