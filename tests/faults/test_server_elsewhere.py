"""The server in each other Python that has it installed: it starts, compiles the same code as here, and runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorkiln import Client, Graph
from tensorkiln.build import Builder, relu
from tests.faults.interpreters import other_interpreters, run
from tests.service.bodies import compile_body, encoded
from tests.service.server import Server

TARGETS = ("cpu:x86-64-v3", "cpu:aarch64", "cuda:sm_90")
HAS_SERVER = "from importlib.util import find_spec; assert find_spec('torch_mlir')"
NONE = "no other Python has the server: KILN_PYTHONS names such, after `pip install './client[cpu]' . pytest`"
RUN = """
import json, sys
import numpy as np
from tensorkiln import Client, Graph
url, graph, home = sys.argv[1:]
rows, weights = (np.arange(size, dtype=np.float32).reshape(-1, 64) % 7 - 3 for size in (4 * 64, 10 * 64))
with Client(url or None, cache_dir=home) as client:
    (result,) = client.compile(Graph.model_validate_json(graph))(rows, weights.T.copy(), n=4)
print(json.dumps(result.tolist()))
"""


def layer() -> Graph:
    """relu(x @ w) with x of n by 64 float32 and w of 64 by 10."""
    b = Builder("layer")
    x, w = b.input("float32", (b.symbol("n", 1, 4096), 64)), b.input("float32", (64, 10))
    b.output(relu(x @ w))
    return b.graph()


def servers() -> dict[str, str]:
    """The other Pythons that have what the server needs, by version."""
    return {
        version: python for version, python in other_interpreters().items() if not run(python, HAS_SERVER).returncode
    }


def test_a_newer_python_compiles_the_same_code_and_runs_it(tmp_path: Path) -> None:
    elsewhere = servers()
    if not elsewhere:
        pytest.skip(NONE)
    graph = layer()
    with Server(tmp_path / "here") as server:
        here = made(server, graph)
        with Client(server.url, cache_dir=tmp_path / "cache") as client:
            rows, weights = (np.arange(size, dtype=np.float32).reshape(-1, 64) % 7 - 3 for size in (256, 640))
            (expected,) = client.compile(graph)(rows, weights.T.copy(), n=4)
    np.testing.assert_array_equal(expected, np.maximum(rows @ weights.T, 0))
    for version, python in elsewhere.items():
        with Server(tmp_path / version, python=python) as server:
            assert made(server, graph) == here, version
            ran = run(python, RUN, server.url, graph.to_json(), str(tmp_path / f"{version} cache"))
        assert ran.returncode == 0, ran.stderr
        assert json.loads(ran.stdout) == expected.tolist(), version
        print(f"Python {version} compiles {len(TARGETS)} programs to the same bytes, and runs one")


def made(server: Server, graph: Graph) -> list[tuple[Any, list[bytes]]]:
    """The program of each target with its code, less what names the build: NumPy's version is part of that."""
    answer = server.compile(encoded({**compile_body(json.loads(graph.to_json())), "target": list(TARGETS)}))
    assert answer.status_code == 200, answer.text
    programs = answer.json()["programs"]
    kept = [
        {name: value for name, value in program.items() if name not in ("digest", "provenance", "cache", "stages")}
        for program in programs
    ]
    digests = [sorted({kernel["artifact"] for kernel in program["kernels"]}) for program in programs]
    code = [[server.http.get(f"/artifacts/{digest}").content for digest in each] for each in digests]
    return list(zip(kept, code, strict=True))
