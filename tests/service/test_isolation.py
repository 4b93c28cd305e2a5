"""The process that answers HTTP never loads the compiler, and what it forks sees none of its secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server

NATIVE = ("libTorchMLIR", "_mlir", "torch_mlir", "llvmlite")


def mapped(pid: int) -> set[str]:
    maps = Path(f"/proc/{pid}/maps").read_text()
    return {library for library in NATIVE if library in maps}


def test_a_service_that_has_compiled_has_no_compiler_in_its_memory(server: Server) -> None:
    assert server.compile(encoded(compile_body(graph("log2", rows=2)))).status_code == 200
    assert server.post("/validate", encoded({"graph": graph()})).status_code == 200
    assert mapped(server.pid) == mapped(server.reader) == set()
    assert {"libTorchMLIR", "llvmlite"} <= mapped(server.fork_server)


def test_a_fork_server_has_one_thread(server: Server) -> None:
    for pid in server.fork_servers:
        assert len(list(Path(f"/proc/{pid}/task").iterdir())) == 1


@pytest.mark.xdist_group("pair")
def test_a_fork_server_inherits_no_secret_of_the_service(unusual: Server) -> None:
    assert "a secret" in Path(f"/proc/{unusual.pid}/environ").read_text()
    assert len(unusual.fork_servers) == 2
    for pid in unusual.fork_servers:
        environment = Path(f"/proc/{pid}/environ").read_text()
        assert "a secret" not in environment
        names = {entry.partition("=")[0] for entry in environment.split("\0") if entry}
        assert names <= {
            *("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHASHSEED"),
            *("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MALLOC_ARENA_MAX", "PYDANTIC_DISABLE_PLUGINS"),
        }
