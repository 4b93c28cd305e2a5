"""The exponential and the pseudo-inverse of matrices, products of reflections, and factors of a packed LU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import Dim
from ..composed.reflections import orthogonal
from ..composed.repeating import as_batch, unit
from ..composed.rotations import eigenvectors, singular_values
from .call import Call, Operator, Results
from .factoring import lower_and_upper, matrices, order_of

TERMS: Final = 18
BLOCK: Final = 5
"""The powers that are computed, by which Paterson and Stockmeyer's method groups the terms."""
LARGEST: Final = {DType.FLOAT32: 3.010066362817634, DType.FLOAT64: 1.090863719290036}
"""The greatest 1-norm for which so many terms of the series are as exact as the type, as in torch."""
HALVINGS: Final = {DType.FLOAT32: 128, DType.FLOAT64: 1025}
"""The most halvings, for a norm near the greatest finite number."""


def _exponential(call: Call) -> Tensor:
    """Taylor's series of the halved matrices, squared as often as they were halved."""
    x = matrices(call, "self")
    if x.dtype not in LARGEST:
        call.fail(f"exponentials of {x.dtype} are not supported; cast the matrices to float32")
    given = as_batch(x)
    # A norm that is not finite gives no turns, and a series that is not finite.
    norm = build.absolute(given).sum([1], keepdims=True).max([2], keepdims=True)
    ratio = norm / LARGEST[x.dtype]
    is_large = (ratio > 1) & (ratio < math.inf)
    times = build.minimum(build.ceil(build.log2(build.where(is_large, ratio, 1))), float(HALVINGS[x.dtype]))
    # In two steps, since a power of two may be no normal number.
    half = build.floor(times / 2)
    series = _series(given * build.exp2(-half) * build.exp2(half - times))

    def goes_on(turn: Tensor, _: Tensor, times: Tensor) -> Tensor:
        return (times > turn).any()

    def squared(turn: Tensor, left: Tensor, times: Tensor) -> list[Tensor]:
        return [turn + 1, build.where(times > turn, build.matmul(left, left), left)]

    first = build.zeros(x.builder, (), x.dtype)
    _, found = build.while_loop(goes_on, squared, [first, series], [times], most=HALVINGS[x.dtype])
    return found.reshape(x.shape)


def _series(x: Tensor) -> Tensor:
    powers = [unit(x.builder, x.shape, x.dtype), x]
    while len(powers) <= BLOCK:
        powers.append(build.matmul(powers[-1], x))
    found: Tensor | None = None
    for first in range(TERMS // BLOCK * BLOCK, -1, -BLOCK):
        terms = range(first, min(first + BLOCK, TERMS + 1))
        total = sum(
            (powers[term - first] * (1.0 / math.factorial(term)) for term in terms[1:]),
            powers[0] / float(math.factorial(first)),
        )
        found = total if found is None else total + build.matmul(powers[BLOCK], found)
    assert found is not None
    return found


def _pseudo_inverse(call: Call) -> Tensor:
    """By singular values, of which those at most the tolerance count as 0."""
    x = matrices(call, "self")
    if call.flag("hermitian"):
        values, vectors = eigenvectors(x, refuse=call.fail)
        left, right, sizes = vectors, build.transpose(vectors), build.absolute(values)
    else:
        left, values, right = singular_values(x, is_full=False, refuse=call.fail)
        sizes = values
    greatest = sizes.max([-1], keepdims=True)
    limit = build.maximum(*_tolerances(call, x, greatest))
    is_kept = sizes > limit
    inverse = build.where(is_kept, 1.0 / build.where(is_kept, values, 1), 0)
    return build.matmul(build.transpose(right) * inverse.unsqueeze([-2]), build.transpose(left))


def _tolerances(call: Call, x: Tensor, greatest: Tensor) -> tuple[Tensor, Tensor]:
    """The absolute tolerance, and the relative one times the greatest size."""
    height, width = (build.dim_value(x.builder, dim, x.dtype) for dim in x.shape[-2:])
    least = build.maximum(height, width) * (2.0 ** (-23 if x.dtype is DType.FLOAT32 else -52))
    absolute, relative = (_column(call, name, x.dtype) for name in ("atol", "rtol"))
    if relative is None:
        relative = least if absolute is None else build.where(absolute > 0, 0, least)
    if absolute is None:
        absolute = build.zeros(x.builder, (), x.dtype)
    return absolute, relative * greatest


def _column(call: Call, name: str, dtype: DType) -> Tensor | None:
    if not call.has(name):
        return None
    found = call.as_tensor(call.operand(name), dtype)
    return found.unsqueeze([-1]) if found.rank else found


def _reflections(call: Call) -> Tensor:
    x = matrices(call, "input")
    return orthogonal(x, call.tensor("tau"), x.shape[-1])


def _unpacked(call: Call) -> list[Tensor]:
    """P, L and U, of packed factors and of exchanges of rows."""
    factors = matrices(call, "LU_data")
    empty: Sequence[Dim] = [0]
    order = build.zeros(factors.builder, empty, factors.dtype)
    lower, upper = lower_and_upper(factors) if call.flag("unpack_data", True) else (order, order)
    if call.flag("unpack_pivots", True):
        order = order_of(factors, call.tensor("LU_pivots").cast(DType.INT64) - 1)
    return [order, lower, upper]


def _nothing(call: Call) -> Results:
    """Factors that do not exist raise no error."""
    del call
    return ()


OPERATORS: dict[str, Operator] = {
    "aten._linalg_check_errors.default": _nothing,
    "aten.linalg_householder_product.default": _reflections,
    "aten.linalg_matrix_exp.default": _exponential,
    "aten.linalg_pinv.atol_rtol_tensor": _pseudo_inverse,
    "aten.lu_unpack.default": _unpacked,
}
