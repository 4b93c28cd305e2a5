"""What the processes of a service do not load, or not before something else has begun, and what secrets they see."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sdk.test_imports import loaded
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server

COMPILER = ("passes", "stablehlo", "dialect", "torch_mlir", "mlir", "llvmlite")


def test_fork_servers_are_begun_before_anything_is_loaded_that_takes_long() -> None:
    heavy = ("asyncio", "pydantic", "structlog", "fastapi", "uvicorn", "numpy", "service.settings", *COMPILER)
    assert loaded("import service.server.command", heavy) == []


def test_the_service_loads_neither_the_compiler_nor_models_and_token_libraries_only_if_asked() -> None:
    script = """
from service.server.serve import create_app
from service.settings import Settings
import sys
create_app(Settings(auth="off"))
assert not {"joserfc", "httpx2"} & {*sys.modules}
create_app(Settings())
"""
    models = ("tensorkiln.graph", "tensorkiln.nodes.program", "tensorkiln.spec.compiled_program", "tensorkiln.schedule")
    # Who asks for no credential loads nothing that verifies tokens.
    assert loaded(script, ("numpy", "ml_dtypes", *COMPILER, *models)) == []


def test_gpu_back_end_and_translator_are_loaded_once_a_fork_server_is_ready() -> None:
    rest = ("passes.gpu", "passes.codegen.nvptx", "stablehlo.translate", "tensorkiln.build")
    drawn = ("yaml", *(f"{bindings}.dialects.linalg.opdsl.lang" for bindings in ("mlir", "torch_mlir")))
    script = f"""
from service.sandbox.tasks.rehearsal import load_the_rest, rehearse
rehearse()
import sys
assert not {{*sys.modules}} & {{*{(*rest, *drawn)}}}
load_the_rest()
"""
    assert loaded(script, rest) == list(rest)


def test_a_service_loads_no_old_models_and_builds_those_of_the_document_at_their_first_use() -> None:
    apart = """
from service.process.interpreter import load_fastapi
load_fastapi()
"""
    told = """
from hashlib import sha256
import json
from fastapi.openapi.models import Link
from pydantic import BaseModel
from service.server.serve import create_app
from service.settings import Settings
app = create_app(Settings(auth="off"))
was_built = Link.__pydantic_complete__
print(was_built, "defer_build" in BaseModel.model_config, sha256(json.dumps(app.openapi()).encode()).hexdigest())
"""
    old, still = ("pydantic.v1.main",), "from pydantic import v1\nassert v1.main"
    *whole, document, name = loaded(f"{told}{apart}{still}", old)
    assert (whole, name) == (["True", "False"], *old)
    assert loaded(f"{apart}{told}", old) == ["False", "False", document]


def test_nothing_is_loaded_that_draws_or_makes_functions_that_nobody_calls() -> None:
    script = """
from service.process.interpreter import load_structlog
load_structlog()
import service.server.serve
import sys
assert not {"rich", "pygments"} & {*sys.modules}
import rich.console
"""
    assert loaded(script, ("structlog", "rich")) == ["structlog", "rich"]


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
