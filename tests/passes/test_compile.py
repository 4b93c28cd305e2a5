"""The compiler as a whole: stages, determinism, refusals, and the smallest graphs."""

from __future__ import annotations

import gc
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dialect.mlir import ir
from passes.compile import Compilation, CompileRequest, compile_request
from tensorkiln.build import Builder, conv2d, gather, matmul, relu, softmax, while_loop
from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tensorkiln.reference import evaluate
from tensorkiln.target import Target
from tests.compiled import compiled, program, run, with_texts
from tests.dialect.wire import graph_of, placeholder, unary
from tests.passes.modules import TARGET, output

STAGES = [
    "from-graph",
    "decompose",
    "split-reductions",
    "block-channels",
    "form-kernels",
    "merge-kernels",
    "to-linalg",
    "pack-parameters",
    "schedule",
    "realise",
    "lower",
    "entries",
    "translate",
    "codegen",
]


def network() -> Graph:
    """A bit of everything: windows, products, reductions, tables, symbols and run-time indices."""
    b = Builder("network")
    n = b.symbol("n", 1, 64)
    x, w = b.input("float32", (n, 3, 8, 8)), b.input("float32", (8, 3, 3, 3))
    dense, rows = b.input("float32", (512, 10)), b.input("int32", (n, 10))
    features = relu(conv2d(x, w, padding=1)).reshape(n, 512)
    scores = softmax(matmul(features, dense) + b.constant([float(i) for i in range(10)], "float32"), -1)
    return output(b, gather(scores, rows, 1), scores.sum(0))


@cache
def made(make: Callable[[], Graph], name: str, *, dump_stages: bool = False) -> Compilation:
    """What `make` makes, compiled once."""
    return compile_request(CompileRequest(make(), Target.parse(name), CompileOptions(dump_stages=dump_stages)))


def test_two_compiles_of_a_graph_give_the_same_bytes() -> None:
    first, second = made(network, TARGET), compiled(network(), TARGET)
    assert first.artifacts == second.artifacts
    assert first.program.model_copy(update={"stages": ()}) == second.program.model_copy(update={"stages": ()})


@pytest.mark.parametrize("target", [TARGET, "cuda:sm_90"])
@pytest.mark.parametrize("dumps", [False, True])
def test_a_compile_leaves_no_context_to_the_collector(target: str, dumps: bool) -> None:
    gc.collect()
    gc.disable()
    before = ir.Context._get_live_count()
    try:
        compile_request(CompileRequest(network(), Target.parse(target), CompileOptions(dump_stages=dumps)))
        assert ir.Context._get_live_count() == before
    finally:
        gc.enable()


DIGESTS = """
from tests.compiled import compiled
from tests.passes.modules import TARGET
from tests.passes.test_compile import network
print(*sorted(compiled(network(), TARGET).artifacts))
"""


def test_a_fresh_process_with_another_hash_seed_gives_the_same_bytes() -> None:
    digests = {_digests_with_seed(seed) for seed in ("0", "1", "4242")}
    assert digests == {" ".join(sorted(made(network, TARGET).artifacts))}


def _digests_with_seed(seed: str) -> str:
    paths = [str(Path(__file__).parents[2]), *(path for path in sys.path if path)]
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(paths)}
    ran = subprocess.run([sys.executable, "-c", DIGESTS], env=environment, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def test_artifacts_are_named_after_their_bytes() -> None:
    compilation = made(network, TARGET)
    assert all(hashlib.sha256(contents).hexdigest() == name for name, contents in compilation.artifacts.items())
    named = {str(kernel.artifact) for kernel in compilation.program.kernels}
    named |= {buffer.artifact for buffer in compilation.program.buffers if buffer.artifact}
    assert named == set(compilation.artifacts)


def test_every_stage_is_told_and_recorded_in_order() -> None:
    told: list[str] = []
    request = CompileRequest(network(), Target.parse(TARGET))
    compilation = compile_request(request, told.append)
    assert told == STAGES
    assert [stage.name for stage in compilation.program.stages] == STAGES
    assert all(stage.seconds >= 0 and stage.dump is None for stage in compilation.program.stages)
    assert compilation.dumps == {}


def test_dumps_are_the_text_of_every_stage() -> None:
    compilation = made(network, TARGET, dump_stages=True)
    assert list(compilation.dumps) == [*STAGES, "origins"]
    records = {stage.name: stage.dump for stage in compilation.program.stages}
    assert records == {name: hashlib.sha256(compilation.dumps[name].encode()).hexdigest() for name in STAGES}
    assert ".globl" in compilation.dumps["codegen"]
    assert "kiln.contract" not in compilation.dumps["decompose"]
    assert "define void @kernel_0" in compilation.dumps["translate"]


def test_dumping_changes_no_artifact() -> None:
    assert made(network, TARGET, dump_stages=True).artifacts == made(network, TARGET).artifacts


def doubled_until_large() -> Graph:
    b = Builder("doubled")
    x = b.input("float32", (b.symbol("rows", 1, 64),))
    return output(b, *while_loop(lambda y: y.max() < 100.0, lambda y: [y + y], [x], most=40))


@pytest.mark.parametrize("name", [TARGET, "cuda:sm_80"])
@pytest.mark.parametrize("make", [network, doubled_until_large])
def test_texts_of_some_stages_are_those_of_all(make: Callable[[], Graph], name: str) -> None:
    request = CompileRequest(make(), Target.parse(name))
    some = with_texts(request, "form-kernels", "schedule", "realise", "translate")
    every = made(make, name, dump_stages=True)
    assert some.artifacts == every.artifacts
    for one, all_of_it in ((some, every), *zip(some.inner, every.inner, strict=True)):
        assert len(one.dumps) == 4
        assert one.dumps.items() <= all_of_it.dumps.items()


def test_a_target_without_a_code_generator_is_refused() -> None:
    request = CompileRequest(network(), Target.parse("rocm:gfx942"))
    with pytest.raises(UnsupportedGraphError, match="no code generator for rocm targets; use a cpu or cuda target"):
        compile_request(request)


def test_fast_math_is_an_option_of_the_request() -> None:
    b = Builder("product")
    graph = output(b, (b.input("float32", (64, 64)) * b.input("float32", (64, 64))).sum(1))
    options = CompileOptions(fast_math=True)
    fast = compile_request(CompileRequest(graph, Target.parse(TARGET), options))
    assert fast.program.kernels
    assert [buffer.role for buffer in fast.program.buffers] == [
        buffer.role for buffer in compiled(graph, TARGET).program.buffers
    ]


def scalar() -> Graph:
    b = Builder("scalar")
    x = b.input("float32", ())
    return output(b, x * x + 1.0)


def scalar_sum() -> Graph:
    b = Builder("scalar_sum")
    return output(b, b.input("float32", (7, 9)).sum())


def empty() -> Graph:
    b = Builder("empty")
    return output(b, b.input("float32", (0, 4)) + 1.0)


def sum_of_nothing() -> Graph:
    b = Builder("sum_of_nothing")
    x = b.input("float32", (0, 4))
    return output(b, x.sum(0), x.max(0))


def stored_nothing() -> Graph:
    """An empty value that a kernel reads: no kernel has written it."""
    kept = {"node": "contiguous", "in_var": 0, "out_var": 1, "dtype": "float32"}
    fields = {"reduce_op_kind": "sum", "axes": [0], "in_var": 1, "dtype": "float32"}
    return graph_of([placeholder(0, [0, 4]), kept, {"node": "reduce_axis", **fields, "out_var": 2}], [2])


def product_over_nothing() -> Graph:
    b = Builder("product_over_nothing")
    return output(b, matmul(b.input("float32", (8, 0)), b.input("float32", (0, 16))))


def identity() -> Graph:
    return graph_of([placeholder(0, [4])], [0])


def repeated() -> Graph:
    return graph_of([placeholder(0, [4]), unary(1, 0)], [1, 0, 1])


def constant_only() -> Graph:
    b = Builder("constant_only")
    return output(b, b.constant([1, 2, 3], "int32"), b.constant(5, "int64"))


@pytest.mark.parametrize(
    "make",
    [
        scalar,
        scalar_sum,
        empty,
        sum_of_nothing,
        stored_nothing,
        product_over_nothing,
        identity,
        repeated,
        constant_only,
    ],
)
def test_the_smallest_graphs_compute_what_the_reference_does(make: Callable[[], Graph]) -> None:
    graph = make()
    random = np.random.default_rng(1)
    shapes = [tuple(int(str(dim)) for dim in graph.types[var].shape) for var in graph.input_vars]
    arrays = [random.integers(-4, 5, shape).astype(np.float32) for shape in shapes]
    results, expected = run(graph, *arrays), evaluate(graph, *arrays)
    assert len(results) == len(expected)
    for actual, wanted in zip(results, expected, strict=True):
        assert actual.dtype == wanted.dtype
        assert actual.shape == wanted.shape
        assert np.array_equal(actual, wanted)


@pytest.mark.parametrize("size", [0, 1, 5])
def test_a_symbol_may_be_zero_at_the_call(size: int) -> None:
    b = Builder("symbolic")
    n = b.symbol("n", 0, 8)
    x, w = b.input("float32", (n, 8)), b.input("float32", (8, 16))
    graph = output(b, matmul(x, w), x.sum(0), softmax(x, -1), x.reshape(2, 4 * n))
    arrays = [np.arange(size * 8, dtype=np.float32).reshape(size, 8), np.ones((8, 16), np.float32)]
    for actual, wanted in zip(run(graph, *arrays, n=size), evaluate(graph, *arrays, n=size), strict=True):
        assert actual.shape == wanted.shape
        assert np.allclose(actual, wanted)


def unit_graph() -> Graph:
    """A mask of a unit marker; the marker stays alive as the operand of the mask."""
    tracker = {"views": [{"shape": [4], "strides": [1], "offset": 0, "mask": [[1, 3]]}], "shape": [4]}
    valid = {"node": "valid", "in_var": 1, "shape_tracker": tracker, "out_var": 2, "dtype": "bool"}
    marker = {"node": "unique", "id": 7, "out_var": 0, "dtype": "unit"}
    kept = {"node": "detach", "in_var": 0, "out_var": 1, "dtype": "unit"}
    return graph_of([marker, kept, valid], [2])


def test_a_unit_value_takes_no_kernel_and_no_buffer() -> None:
    compilation = compiled(unit_graph())
    assert [kernel.name for kernel in compilation.program.kernels] == ["kernel_0"]
    assert [str(buffer.dtype) for buffer in compilation.program.buffers] == ["bool"]
    (mask,) = program(compilation)()
    assert mask.tolist() == [False, True, True, False]


def test_a_program_without_kernels_has_an_object_all_the_same() -> None:
    compilation = compiled(identity())
    assert compilation.program.kernels == ()
    assert compilation.program.schedule.items == ()


def test_a_kernel_names_the_nodes_that_it_computes() -> None:
    compilation = compiled(graph_of([placeholder(0, [4]), unary(1, 0), unary(2, 1, "exp2")], [2]))
    (item,) = compilation.program.schedule.items
    assert item.operation.op == "kernel"
    assert [(ref.node, ref.kind) for ref in item.operation.ops] == [(1, "unary"), (2, "unary")]
