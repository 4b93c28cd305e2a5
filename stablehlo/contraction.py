"""dot_general: a sum of products over any axes."""

from __future__ import annotations

from string import ascii_letters
from typing import Final

from dialect.mlir import stablehlo
from tensorkiln import build
from tensorkiln.dtypes import DType

from .op import Op
from .table import Translator
from .value import Value


def accumulator(op: Op, operand: DType, result: DType) -> DType:
    """The type in which products are summed up, of which both others are converted without loss where one can be."""
    if operand.is_bool or result.is_bool:
        op.fail("a sum of products of bools is not supported; compare and reduce by `or`")
    if result.is_float and operand.is_float:
        return result if result.bits >= operand.bits else operand
    if result.is_float or operand.is_float:
        op.fail(f"products of {operand} are not summed up in {result}")
    return result


def _dot_general(op: Op) -> Value:
    left, right = op.tensors()
    numbers = stablehlo.DotDimensionNumbers(op.attribute("dot_dimension_numbers"))
    batches = list(zip(numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions, strict=True))
    summed = list(zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True))
    if left.rank + right.rank > len(ascii_letters):
        op.fail(f"operands of the ranks {left.rank} and {right.rank} are not supported")
    letters = iter(ascii_letters)
    of_left = [next(letters) for _ in range(left.rank)]
    of_right = [next(letters) for _ in range(right.rank)]
    for own, other in (*batches, *summed):
        of_right[other] = of_left[own]
    shared = {axis for axis, _ in (*batches, *summed)}
    other_shared = {axis for _, axis in (*batches, *summed)}
    out = [of_left[axis] for axis, _ in batches]
    out += [of_left[axis] for axis in range(left.rank) if axis not in shared]
    out += [of_right[axis] for axis in range(right.rank) if axis not in other_shared]
    result = op.result().dtype
    inside = accumulator(op, left.dtype if left.dtype.bits >= right.dtype.bits else right.dtype, result)
    subscripts = f"{''.join(of_left)},{''.join(of_right)}->{''.join(out)}"
    return build.einsum(subscripts, left.cast(inside), right.cast(inside)).cast(result)


OPERATORS: Final[dict[str, Translator]] = {"stablehlo.dot_general": _dot_general}
