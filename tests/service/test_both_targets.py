"""One request for a CPU and a GPU: two programs, each of which computes what the reference says."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from passes.compile import Compilation
from tensorkiln import reference
from tensorkiln.build import Builder, layer_norm, matmul, softmax
from tensorkiln.graph import Graph
from tensorkiln.program import Program
from tensorkiln.schedule import KernelItem, Schedule
from tensorkiln.spec import CompiledProgram
from tests.emulated import Emulation
from tests.service.bodies import V3, compile_body, encoded
from tests.service.server import Server

ROWS = 37


def softmax_rows() -> Graph:
    b = Builder("rows")
    b.output(softmax(b.input("float32", (b.symbol("n", 1, 4096), 96))))
    return b.graph()


def layer() -> Graph:
    b = Builder("layer")
    x, w = b.input("float32", (b.symbol("n", 1, 512), 48)), b.input("float32", (48, 33))
    b.output(layer_norm(matmul(x, w)))
    return b.graph()


@pytest.mark.parametrize(
    ("write", "shapes"), [(softmax_rows, [(ROWS, 96)]), (layer, [(ROWS, 48), (48, 33)])], ids=["softmax", "layer"]
)
def test_one_request_gives_a_program_for_each_target(
    server: Server, write: Callable[[], Graph], shapes: list[tuple[int, ...]]
) -> None:
    graph = write()
    body = compile_body(json.loads(graph.to_json()), [V3, "cuda:sm_90"], dump_stages=True)
    answer = server.compile(encoded(body))
    on_cpu, on_gpu = (CompiledProgram.model_validate(each) for each in answer.json()["programs"])
    assert [on_cpu.target.kind, on_gpu.target.arch] == ["cpu", "sm_90"]
    assert on_cpu.digest != on_gpu.digest
    assert _nodes(on_cpu.schedule) == _nodes(on_gpu.schedule)
    assert all(b".version" in _artifact(server, str(kernel.artifact)) for kernel in on_gpu.kernels)

    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape, np.float32) for shape in shapes]
    (expected,) = reference.evaluate(graph, *arrays, n=ROWS)
    (computed,) = Program(on_cpu, lambda digest: _artifact(server, digest))(*arrays, n=ROWS)
    np.testing.assert_allclose(computed, expected, 2e-5, 2e-6)
    llvm_ir = server.http.get(f"/programs/{on_gpu.digest}/stages/translate").text
    (emulated,) = Emulation(Compilation(on_gpu, {}, {"translate": llvm_ir}), arrays, {"n": ROWS}).run()
    np.testing.assert_allclose(emulated, expected, 2e-5, 2e-6)


def _nodes(schedule: Schedule) -> list[list[int]]:
    return [[op.node for op in item.operation.ops] for item in schedule.items if isinstance(item.operation, KernelItem)]


def _artifact(server: Server, digest: str) -> bytes:
    return server.http.get(f"/artifacts/{digest}").content
