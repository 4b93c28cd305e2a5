"""dot_general: a sum of products over any axes."""

from __future__ import annotations

from string import ascii_letters
from typing import Final

from dialect.mlir import stablehlo
from tensorkiln import build
from tensorkiln.dtypes import DType

from .op import Op
from .table import Translator
from .types import DTYPES
from .value import Value


def accumulator(op: Op, left: DType, right: DType, result: DType) -> DType:
    """The type in which products are summed: it represents all values of both operands.

    Integers are summed in the result's type, since sums wrap.
    """
    kinds = (left, right, result)
    if any(kind.is_bool for kind in kinds):
        op.fail("a sum of products of bools is not supported; compare and reduce by `or`")
    if not any(kind.is_float for kind in kinds):
        return result
    if not all(kind.is_float for kind in kinds):
        op.fail(f"products of {left} and {right} are not summed up in {result}")
    if len({kind for kind in kinds if kind.is_half}) > 1:
        # Neither half type has all values of the other.
        kinds = (*kinds, DType.FLOAT32)
    return max(kinds, key=lambda kind: kind.bits)


def subscripts(op: Op, left: int, right: int) -> str:
    """The `einsum` subscripts for operands of these ranks."""
    numbers = stablehlo.DotDimensionNumbers(op.attribute("dot_dimension_numbers"))
    batches = list(zip(numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions, strict=True))
    summed = list(zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True))
    if left + right > len(ascii_letters):
        op.fail(f"operands of the ranks {left} and {right} are not supported")
    letters = iter(ascii_letters)
    of_left = [next(letters) for _ in range(left)]
    of_right = [next(letters) for _ in range(right)]
    for own, other in (*batches, *summed):
        of_right[other] = of_left[own]
    shared = {axis for axis, _ in (*batches, *summed)}
    other_shared = {axis for _, axis in (*batches, *summed)}
    out = [of_left[axis] for axis, _ in batches]
    out += [of_left[axis] for axis in range(left) if axis not in shared]
    out += [of_right[axis] for axis in range(right) if axis not in other_shared]
    return f"{''.join(of_left)},{''.join(of_right)}->{''.join(out)}"


def _dot_general(op: Op) -> Value:
    left, right = op.tensors()
    result = op.result().dtype
    is_of_bools = left.dtype.is_bool and right.dtype.is_bool and result.is_bool
    # A sum of bools is whether any is true, which is whether their number is not 0.
    inside = DType.INT32 if is_of_bools else accumulator(op, left.dtype, right.dtype, result)
    _require_algorithm(op, left.dtype, right.dtype, inside)
    return build.einsum(subscripts(op, left.rank, right.rank), left.cast(inside), right.cast(inside)).cast(result)


def _require_algorithm(op: Op, left: DType, right: DType, inside: DType) -> None:
    """Refuse an algorithm that differs from the computation: unconverted operands, sums of half types in float32."""
    if not op.has("algorithm"):
        return
    asked = stablehlo.DotAlgorithm(op.attribute("algorithm"))
    kinds = [DTYPES.get(str(kind)) for kind in (asked.lhs_precision_type, asked.rhs_precision_type)]
    counts = (asked.lhs_component_count, asked.rhs_component_count, asked.num_primitive_operations)
    sums = {inside, inside.accumulator}
    if kinds != [left, right] or counts != (1, 1, 1) or DTYPES.get(str(asked.accumulation_type)) not in sums:
        op.fail(f"its algorithm is not supported; ask for one of {left} and {right} that sums up in {inside}, or none")


OPERATORS: Final[dict[str, Translator]] = {"stablehlo.dot_general": _dot_general}
