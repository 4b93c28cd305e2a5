"""The option that turns fusion off: every op a kernel, every value a place of its own, and the same results."""

from __future__ import annotations

import numpy as np
import pytest

from passes.compile import CompileRequest, compile_request
from tensorkiln.build import Builder, cat, exp, matmul, pad, relu, scatter, softmax
from tensorkiln.options import CompileOptions
from tensorkiln.reference import evaluate
from tensorkiln.target import Target
from tests.compiled import program, with_texts
from tests.emulated import Emulation
from tests.passes.modules import output, shape_of_kernels


def test_without_fusion_every_op_has_a_kernel_and_a_product_is_summed_as_it_is_made() -> None:
    """Of x @ w: the operands' movement, and one kernel that multiplies and sums; of what is behind it, an op each."""
    b = Builder("layer")
    x, w, bias = b.input("float32", (b.symbol("n", 1, 64), 32)), b.input("float32", (32, 16)), b.input("float32", (16,))
    graph = output(b, softmax(relu(matmul(x, w) + bias)).reshape(-1))
    roots = [kinds for _, kinds in shape_of_kernels(graph, fusion=False)]
    moved = ["reshape", "permute", "reshape"]
    behind = ["reshape", "binop", "binop", "reduce_axis", "binop", "binop", "unary", "reduce_axis", "binop", "reshape"]
    assert roots == [[kind] for kind in [*moved, "reduce_axis", *behind]]
    assert len(shape_of_kernels(graph)) == 3


def test_without_fusion_no_value_lies_in_another_and_none_is_computed_in_place() -> None:
    b = Builder("joined")
    x = b.input("float32", (8, 16))
    half = exp(x)
    graph = output(b, cat([half, exp(half)]).reshape(-1) * 2.0)
    options = CompileOptions(fusion=False)
    program = compile_request(CompileRequest(graph, Target.parse("cpu"), options)).program
    assert [buffer.alias_group for buffer in program.buffers] == [None] * len(program.buffers)
    assert len(program.kernels) == 7


@pytest.mark.parametrize("target", ["cpu:native", "cuda:sm_80"])
def test_without_fusion_the_result_is_the_same(target: str) -> None:
    b = Builder("same")
    n = b.symbol("n", 1, 64)
    x, w = b.input("float32", (n, 9)), b.input("float32", (9, 12))
    b.output(
        softmax(relu(pad(x, ((1, 0), (0, 0))) @ w)), scatter(b.constant([[3, 1]], "int32"), x[:1, :2] * 2.0, 1, (1, 5))
    )
    graph = b.graph()
    made = with_texts(CompileRequest(graph, Target.parse(target), CompileOptions(fusion=False)), "translate")
    rng = np.random.default_rng(4)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((5, 9), (9, 12))]
    call = program(made) if target.startswith("cpu") else lambda *given, **named: Emulation(made, given, named).run()
    for result, expected in zip(call(*arrays, n=5), evaluate(graph, *arrays, n=5), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
