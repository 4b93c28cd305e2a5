"""A contraction in every form that the builder and the importers write."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensorkiln.build import Tensor, cast, conv, einsum, matmul, transpose
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, product

from .composer import Composer
from .prologues import operand
from .sizes import CHANNELS, COLUMNS, IMAGE, SMALL, matrix_sizes

Form = Callable[[Composer, DType], Tensor]

DTYPES = (
    DType.FLOAT32,
    DType.FLOAT32,
    DType.FLOAT32,
    DType.FLOAT64,
    DType.FLOAT16,
    DType.BFLOAT16,
    DType.INT32,
    DType.INT64,
    DType.UINT32,
    DType.UINT64,
    DType.INT8,
    DType.INT16,
    DType.UINT8,
    DType.UINT16,
)


def any_product(composer: Composer) -> Tensor:
    """The result of a contraction of any form and dtype."""
    dtype = composer.pick(DTYPES)
    form = composer.pick(_FORMS)
    return form(composer, dtype)


def product_with(composer: Composer, x: Tensor) -> Tensor:
    """`x` times a matrix of its own: a second layer."""
    columns = composer.dim(COLUMNS, max(composer.points // max(composer.count(x), 1), 1))
    return matmul(x, operand(composer, x.dtype, (x.shape[-1], columns)))


def _matmul(composer: Composer, dtype: DType) -> Tensor:
    m, n, k = matrix_sizes(composer)
    return matmul(operand(composer, dtype, (m, k)), operand(composer, dtype, (k, n)))


def _transposed(composer: Composer, dtype: DType) -> Tensor:
    m, n, k = matrix_sizes(composer)
    left = transpose(operand(composer, dtype, (k, m))) if composer.flag() else operand(composer, dtype, (m, k))
    return matmul(left, transpose(operand(composer, dtype, (n, k))))


def _gemm(composer: Composer, dtype: DType) -> Tensor:
    """As the importer writes Gemm, scaled or not."""
    m, n, k = matrix_sizes(composer)
    letters = {"m": m, "n": n, "k": k}
    left, right = composer.pick(["mk", "km"]), composer.pick(["kn", "nk"])
    a, b = (operand(composer, dtype, [letters[letter] for letter in term]) for term in (left, right))
    found = einsum(f"{left},{right}->mn", a, b)
    return found * (0.5 if dtype.is_float else 2) if composer.flag() else found


def _batched(composer: Composer, dtype: DType) -> Tensor:
    batch = composer.dim(SMALL, composer.points // 64)
    m, n, k = matrix_sizes(composer, composer.value(batch))
    right = (batch, k, n) if composer.flag() else (k, n)
    left = operand(composer, dtype, (batch, m, k))
    if composer.flag():
        return matmul(left, operand(composer, dtype, right))
    return matmul(left, transpose(operand(composer, dtype, (*right[:-2], n, k))))


def _heads(composer: Composer, dtype: DType) -> Tensor:
    """Scores of several heads: (b, s, h, d) by (b, t, h, d) as (b, h, s, t), or these by values."""
    batch, heads = (composer.pick([2, 1, 3]) for _ in range(2))
    m, n, k = matrix_sizes(composer, batch * heads)
    terms = composer.pick(["bshd,bthd->bhst", "bhst,bthd->bshd", "bhsd,bhtd->bhst"])
    letters: dict[str, Dim] = {"b": batch, "h": heads, "s": m}
    letters |= {"t": k, "d": n} if terms.startswith("bhst") else {"t": n, "d": k}
    left, _, right = terms.partition("->")[0].partition(",")
    a, b = (operand(composer, dtype, [letters[letter] for letter in term]) for term in (left, right))
    return einsum(terms, a, b)


def _vector(composer: Composer, dtype: DType) -> Tensor:
    """A matrix by a vector, a vector by a matrix."""
    m, _, k = matrix_sizes(composer)
    if composer.flag():
        return matmul(operand(composer, dtype, (m, k)), operand(composer, dtype, (k,)))
    return matmul(operand(composer, dtype, (k,)), operand(composer, dtype, (k, m)))


def _outer(composer: Composer, dtype: DType) -> Tensor:
    """Several axes on either side and in the sum."""
    m, n, k = matrix_sizes(composer)
    split = composer.pick([2, 3])
    a = operand(composer, dtype, (m, split, k))
    return einsum("msk,ksn->mn", a, operand(composer, dtype, (k, split, n)))


def _contract(composer: Composer, dtype: DType) -> Tensor:
    """The node, over one pair of axes or two."""
    m, n, k = matrix_sizes(composer)
    if composer.flag():
        pairs, left, right = [[1, 0]], (m, k), (k, n)
    else:
        pairs, left, right = [[0, 1], [2, 2]], (k, m, 2), (n, k, 2)
    a, b = operand(composer, dtype, left), operand(composer, dtype, right)
    return composer.b.append("contract", dtype, (m, n), in_vars=[a.var, b.var], contraction_axes=pairs)


def _unrounded(composer: Composer, dtype: DType) -> Tensor:
    """A product in the dtype of the operands, not in a wider one, and a sum in the same: no form of the builder."""
    m, n, k = matrix_sizes(composer)
    a, b = operand(composer, dtype, (m, 1, k)), operand(composer, dtype, (1, n, k))
    multiplied = a * b
    wide = cast(multiplied, DType.FLOAT32) if dtype.is_half and composer.flag() else multiplied
    return composer.b.append("reduce_axis", wide.dtype, (m, n), in_var=wide.var, reduce_op_kind="sum", axes=[2])


def _convolution(composer: Composer, dtype: DType) -> Tensor:
    groups = composer.pick([1, 1, 1, 2, 4])
    per_group, outputs = composer.pick(CHANNELS), composer.pick([8, 4, 1, 3, 16, 20])
    return _convolved(composer, dtype, groups, per_group, outputs * groups)


def _depthwise(composer: Composer, dtype: DType) -> Tensor:
    channels = composer.pick(CHANNELS)
    return _convolved(composer, dtype, channels, 1, channels * composer.pick([1, 1, 2]))


def _convolved(composer: Composer, dtype: DType, groups: int, per_group: int, outputs: int) -> Tensor:
    rank = composer.pick([2, 2, 1])
    size = composer.pick([3, 1, 1, 2])
    stride, padding = composer.pick([1, 1, 2]), composer.pick([0, 1] if size > 1 else [0])
    dilation = composer.pick([1, 1, 2]) if size > 1 else 1
    batch = composer.dim((1, 2, 3), 3)
    spatial = [composer.dim([s for s in IMAGE if s >= (size - 1) * dilation + 1], 32) for _ in range(rank)]
    if any(composer.b.bounds(dim)[0] < (size - 1) * dilation + 1 - 2 * padding for dim in spatial):
        size, padding, dilation = 1, 0, 1
    reads = composer.value(product([batch, outputs, per_group, *spatial])) * size**rank
    if reads > composer.points:
        outputs, groups, per_group = 2, 1, 2
    x = operand(composer, dtype, (batch, groups * per_group, *spatial))
    weight = operand(composer, dtype, (outputs, per_group, *[size] * rank))
    bias = composer.input(dtype, (outputs,)) if composer.flag() else None
    return conv(x, weight, bias, stride, padding, dilation, groups)


_FORMS: Sequence[Form] = (
    _matmul,
    _matmul,
    _matmul,
    _transposed,
    _gemm,
    _batched,
    _heads,
    _vector,
    _outer,
    _contract,
    _unrounded,
    _convolution,
    _convolution,
    _depthwise,
)
