from __future__ import annotations

import pytest

from dialect.mlir import ir
from dialect.operation import MAX_RUNS
from dialect.verify import verify
from tensorkiln.errors import DiagnosticError

VIEW = "{shape = [2], strides = [1], offset = 0}"
RUNS = "array<i32: {}" + ", 0" * (MAX_RUNS - 2) + ">"

REFUSED = {
    '"kiln.binop"(%m, %v) {op = "add"} : (T, V) -> T': "ranks [2, 1]",
    '"kiln.binop"(%m) {op = "add"} : (T) -> T': "expects exactly 2 operands",
    '"kiln.binop"(%m, %m) : (T, T) -> T': 'attribute "op" is expected',
    '"kiln.unary"(%m) {op = 1} : (T) -> T': "expected base attribute",
    '"kiln.unary"(%m) {op = "neg"} : (T) -> tensor<2x4xf32>': "the shapes differ",
    '"kiln.ternary"(%m, %m, %h) {op = "where"} : (T, T, H) -> T': "the dtypes differ: float32, float16",
    '"kiln.reshape"(%m) : (T) -> tensor<5xf32>': "numbers of elements differ: 6 and 5",
    '"kiln.permute"(%m) {axes_permutation = array<i64: 0, 0>} : (T) -> T': "no permutation of 2 axes",
    '"kiln.permute"(%m) {axes_permutation = array<i64: 1, 0>} : (T) -> T': "the shapes differ",
    '"kiln.expand"(%m) : (T) -> V': "the result has rank 1, not 2",
    '"kiln.pad"(%m) {pad_width = [[0, 1]]} : (T) -> T': "pad_width has 1 entries for 2 axes",
    '"kiln.pad"(%m) {pad_width = [[0, 1], [0, 0]]} : (T) -> T': "the shapes differ",
    '"kiln.shrink"(%m) {limits = [[0, 1], [0, 3]]} : (T) -> T': "the shapes differ",
    '"kiln.flip"(%m) {axes = array<i64: 2>} : (T) -> T': "are not distinct axes of 2",
    '"kiln.cat"(%m, %v) {axis = 0, operandSegmentSizes = ' + RUNS.format("1, 1") + "} : (T, V) -> T": "do not join",
    '"kiln.cat"(%m, %m) {axis = 2, operandSegmentSizes = '
    + RUNS.format("2, 0")
    + "} : (T, T) -> T": "distinct axes of 2",
    '"kiln.cat"(%m, %v) {axis = 0, operandSegmentSizes = ' + RUNS.format("2, 0") + "} : (T, V) -> T": "but got",
    '"kiln.cat"() {axis = 0, operandSegmentSizes = ' + RUNS.format("0, 0") + "} : () -> T": "do not join",
    f'"kiln.view"(%m) {{shape_tracker = {{views = [{VIEW}], shape = [3]}}}} : (T) -> V': "not that of its last view",
    f'"kiln.view"(%m) {{shape_tracker = {{views = [{VIEW}], shape = [2]}}}} : (T) -> T': "the shapes differ",
    '"kiln.reduce_axis"(%m) {axes = array<i64: 0, 0>, reduce_op_kind = "sum"} : (T) -> T': "are not distinct axes",
    '"kiln.reduce_axis"(%m) {axes = array<i64: 0>, reduce_op_kind = "sum"} : (T) -> V': "differ: (3) and (2)",
    '"kiln.index"(%m, %v, %v, %v) : (T, V, V, V) -> V': "2 gates",
    '"kiln.gep"(%m) {indices = array<i64: 0>} : (T) -> T': "has rank 2, not 1",
    '"kiln.vectorize"(%v) {operandSegmentSizes = ' + RUNS.format("1, 0") + "} : (V) -> T": "do not stack",
    '"kiln.wmma"(%m, %m, %v) {m = 2, n = 3, k = 2} : (T, T, V) -> V': "an operand has rank 1",
    '"kiln.contract"(%m, %m) {contraction_axes = [array<i64: 0, 0>]} : (T, T) -> V': "the result has rank 1, not 2",
    '"kiln.cast"(%m) : (T) -> V': "the shapes differ",
    '"kiln.bitcast"(%m) : (T) -> V': "the result has rank 1",
    '"kiln.gather"(%m, %v) {axis = 0} : (T, V) -> V': "indices has rank 1, not 2",
    '"kiln.scatter"(%m, %m) {axis = 0, reduction = "none"} : (T, T) -> H': "the dtypes differ",
    '"kiln.scatter"(%m, %m, %m, %m) {axis = 0, reduction = "add"} : (T, T, T, T) -> T': "there are 2 initial values",
    '"kiln.scatter"(%m, %m, %v) {axis = 0, reduction = "add"} : (T, T, V) -> T': "the shapes differ",
    '"kiln.assign"(%m, %h) {range} : (T, H) -> T': "the dtypes differ",
    '"kiln.assign"(%m, %m) {range = array<i64: 3, 1>} : (T, T) -> T': "[3, 1] is no range",
    '"kiln.detach"(%m) : (T) -> H': "the dtypes differ",
    '"kiln.noop"(%m, %m) : (T, T) -> T': "2 operands",
    '"kiln.bind"(%v) {value = 1} : (V) -> V': "the result has rank 1",
    '"kiln.threefry"(%m, %h) : (T, H) -> T': "the dtypes differ",
    '"kiln.multi"(%m) {axis = 0, real_mask = array<i1>, operandSegmentSizes = '
    + RUNS.format("1, 0")
    + "} : (T) -> T": ("real_mask has 0 entries for 1 values"),
    '"kiln.detach"(%m) : (T) -> tensor<?x3xf32>': "no encoding",
    '"kiln.unknown"(%m) : (T) -> T': "unregistered operation 'kiln.unknown'",
}


def module_text(op: str) -> str:
    spelled = (
        op.replace("(T", "(tensor<2x3xf32>").replace(", T", ", tensor<2x3xf32>").replace("-> T", "-> tensor<2x3xf32>")
    )
    for letter, tensor in (("V", "tensor<2xf32>"), ("H", "tensor<2x3xf16>")):
        for before in ("(", ", ", "-> "):
            spelled = spelled.replace(before + letter, before + tensor)
    return f"""
      func.func @graph(%m: tensor<2x3xf32>, %v: tensor<2xf32>, %h: tensor<2x3xf16>) {{
        %r = {spelled} loc("/nodes/7")
        return
      }}"""


@pytest.mark.parametrize("op", REFUSED, ids=[op.split('"')[1] + f"-{number}" for number, op in enumerate(REFUSED)])
def test_an_illegal_op_is_refused_with_its_node(op: str, context: ir.Context) -> None:
    with pytest.raises((DiagnosticError, ir.MLIRError)) as caught:
        verify(ir.Module.parse(module_text(op)), "decompose")
    assert REFUSED[op] in str(caught.value)
    if isinstance(caught.value, DiagnosticError):
        assert caught.value.pointers == ("/nodes/7",)
        assert caught.value.details["stage"] == "decompose"
