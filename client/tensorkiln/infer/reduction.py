"""Reduce_axis, wmma, contract."""

from __future__ import annotations

from ..dtypes import DType
from ..nodes import Contract, ReduceAxis, Wmma
from ..types import TensorType
from .legality import FLOATS, NUMBERS, VALUES, advice
from .movement import distinct_axes, operand
from .scope import Scope, shape_text


def reduce_axis(node: ReduceAxis, scope: Scope) -> TensorType:
    source, axes = operand(scope, node.in_var), node.axes
    if source.dtype not in VALUES:
        scope.fail(f"reduce_axis does not take {source.dtype}{advice(source.dtype)}", "in_var")
    scope.require_dtype(node.dtype, source.dtype)
    distinct_axes(scope, axes, source.rank, "axes")
    stated = scope.stated_shape(node.out_var)
    if stated is None or len(stated) == source.rank:
        return scope.type(source.dtype, tuple(1 if axis in axes else dim for axis, dim in enumerate(source.shape)))
    if len(stated) != source.rank - len(axes):
        scope.fail(
            f"a reduction of {len(axes)} of {source.rank} axes has rank {source.rank} or {source.rank - len(axes)}; "
            f"the metadata of var {node.out_var} says {shape_text(stated)}",
            "axes",
        )
    return scope.type(source.dtype, tuple(dim for axis, dim in enumerate(source.shape) if axis not in axes))


def _accumulates(source: DType, result: DType) -> bool:
    """Whether `result` can represent every value of `source`, or both are integers, which wrap."""
    if source in FLOATS:
        return source is result or (result in FLOATS and result.bits > source.bits)
    return result in NUMBERS - FLOATS and result.bits >= source.bits


def wmma(node: Wmma, scope: Scope) -> TensorType:
    a, b, c = (
        operand(scope, var, field)
        for var, field in ((node.a_var, "a_var"), (node.b_var, "b_var"), (node.c_var, "c_var"))
    )
    if a.dtype not in NUMBERS or a.dtype is not b.dtype:
        scope.fail(
            f"wmma takes two matrices of one numeric dtype, here {a.dtype} and {b.dtype}{advice(a.dtype)}",
            "a_var",
            "b_var",
        )
    if not _accumulates(a.dtype, c.dtype):
        scope.fail(f"wmma cannot accumulate {a.dtype} in {c.dtype}: it must be as wide and of the same kind", "c_var")
    scope.require_dtype(node.dtype, c.dtype)
    for operand_type, shape, field in (
        (a, (node.m, node.k), "a_var"),
        (b, (node.k, node.n), "b_var"),
        (c, (node.m, node.n), "c_var"),
    ):
        scope.require_same_shape(operand_type.shape, shape, f"{field} does not have the shape of the tile", field)
    return scope.type(c.dtype, (node.m, node.n))


def contract(node: Contract, scope: Scope) -> TensorType:
    if len(node.in_vars) != 2:
        scope.fail(f"contract takes two inputs, here {len(node.in_vars)}", "in_vars")
    a, b = (operand(scope, var, "in_vars") for var in node.in_vars)
    if a.dtype is not b.dtype:
        scope.fail(f"the operands have different dtypes: {a.dtype} and {b.dtype} (cast one of them)", "in_vars")
    if a.dtype not in VALUES:
        scope.fail(f"contract does not take {a.dtype}{advice(a.dtype)}", "in_vars")
    scope.require_dtype(node.dtype, a.dtype)
    summed_a = tuple(pair[0] for pair in node.contraction_axes)
    summed_b = tuple(pair[1] for pair in node.contraction_axes)
    distinct_axes(scope, summed_a, a.rank, "contraction_axes")
    distinct_axes(scope, summed_b, b.rank, "contraction_axes")
    for i, j in node.contraction_axes:
        message = f"axis {i} of the first input and axis {j} of the second have different sizes"
        scope.require_eq(a.shape[i], b.shape[j], message, "contraction_axes")
    free_a = tuple(dim for axis, dim in enumerate(a.shape) if axis not in summed_a)
    free_b = tuple(dim for axis, dim in enumerate(b.shape) if axis not in summed_b)
    return scope.type(a.dtype, free_a + free_b)


RULES = {ReduceAxis: reduce_axis, Wmma: wmma, Contract: contract}
