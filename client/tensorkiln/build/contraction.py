"""Matrix products, spelled as an expanded product and a sum over the shared axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..expr import sub
from ..nearest import quoted
from .arithmetic import mul
from .broadcast import broadcast_shape
from .conversion import cast
from .movement import permute, reshape, transpose, unsqueeze
from .operands import adopt, need, require_tensor
from .reduction import sum_

if TYPE_CHECKING:
    from .tensor import Tensor


def sum_of_products(a: Tensor, b: Tensor, axes: Sequence[int]) -> Tensor:
    """The sum over `axes` of `a * b` broadcast together; float16 and bfloat16 products and sums are float32 inside."""
    adopt(b, a)
    need(a, "a product of tensors", floats=True, integers=True)
    accumulator = a.dtype.accumulator
    return cast(sum_(mul(cast(a, accumulator), cast(b, accumulator)), axes), a.dtype)


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """`a @ b` by NumPy's rules: (…, m, k) by (…, k, n), leading dims broadcast, an operand of rank 1 is a vector.

    Integers wrap in their own dtype: cast to a wider one first.
    """
    require_tensor(a, "matmul")
    require_tensor(b, "matmul")
    if not a.shape or not b.shape:
        raise a.builder.error("a matrix product takes no scalar; use *")
    left = unsqueeze(a, 0) if len(a.shape) == 1 else a
    right = unsqueeze(b, -1) if len(b.shape) == 1 else b
    (rows, depth), (other_depth, columns) = left.shape[-2:], right.shape[-2:]
    if depth != other_depth:
        # The shared axis never broadcasts, even with size 1.
        low, high = a.builder.bounds(depth - other_depth)
        if 1 in (depth, other_depth) or low > 0 or high < 0:
            raise a.builder.error(
                f"the shared axis of a matrix product is {depth} on the left and {other_depth} on the right"
            )
    batch = broadcast_shape(a.builder, [left.shape[:-2], right.shape[:-2]])
    left = unsqueeze(left, -2)
    right = unsqueeze(transpose(right), -3)
    product = sum_of_products(left, right, [-1])
    shape = [*batch, *([rows] if len(a.shape) > 1 else []), *([columns] if len(b.shape) > 1 else [])]
    return reshape(product, shape)


def einsum(subscripts: str, a: Tensor, b: Tensor) -> Tensor:
    """`numpy.einsum` of two tensors with an explicit result, such as "bij,bjk->bik"; one letter an axis."""
    require_tensor(a, "einsum")
    require_tensor(b, "einsum")
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    first, comma, second = inputs.partition(",")
    letters = set(first + second)
    if (
        not arrow
        or not comma
        or not set(output) <= letters
        or any(len(set(s)) != len(s) for s in (first, second, output))
    ):
        raise a.builder.error(
            f'einsum takes two operands, distinct letters and a result, as in "ij,jk->ik": {subscripts!r}'
        )
    if len(first) != len(a.shape) or len(second) != len(b.shape):
        raise a.builder.error(f"the ranks {len(a.shape)} and {len(b.shape)} do not fit {subscripts!r}")
    sizes = [dict(zip(first, a.shape, strict=True)), dict(zip(second, b.shape, strict=True))]
    for letter in sorted(set(first) & set(second)):
        left, right = (each[letter] for each in sizes)
        low, high = a.builder.bounds(sub(left, right))
        if (low > 0 or high < 0) and 1 not in (left, right):
            raise a.builder.error(
                f"the axis {letter} of {quoted(subscripts)} is {left} on the left and {right} on the right"
            )
    summed = sorted(letters - set(output))
    order = [*output, *summed]
    return sum_of_products(_aligned(a, first, order), _aligned(b, second, order), range(len(output), len(order)))


def _aligned(x: Tensor, letters: str, order: Sequence[str]) -> Tensor:
    present = [letter for letter in order if letter in letters]
    dims = dict(zip(letters, x.shape, strict=True))
    return reshape(permute(x, [letters.index(letter) for letter in present]), [dims.get(letter, 1) for letter in order])
