"""Matrix products, attention, and distances."""

from __future__ import annotations

import math

import numpy as np

from ... import build
from ...build import Tensor
from ...build.conversion import widened
from ...expr import Dim
from .call import Call, Operator

MAX_ROWS = 1 << 10
"""The most vectors whose pairs `pdist` lists."""


def _product(first: str, second: str) -> Operator:
    return lambda call: build.matmul(call.tensor(first).cast(call.dtype), call.tensor(second).cast(call.dtype))


def _added(first: str, second: str) -> Operator:
    """`beta * self + alpha * (a @ b)`; with beta 0, `self` is ignored, even NaN."""

    def apply(call: Call) -> Tensor:
        found = build.matmul(call.tensor(first).cast(call.dtype), call.tensor(second).cast(call.dtype))
        return _with_input(call, call.times(found, "alpha"))

    return apply


def _with_input(call: Call, found: Tensor) -> Tensor:
    beta = call.value("beta")
    if isinstance(beta, int | float) and beta == 0:
        return found
    return call.times(call.tensor().cast(call.dtype), "beta") + found


def _summed_batches(call: Call) -> Tensor:
    """`addbmm`: the sum of a batch of matrix products."""
    found = call.times(build.matmul(call.tensor("batch1"), call.tensor("batch2")).sum(0), "alpha")
    return _with_input(call, found)


def affine(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The product of `x` and the rows of a weight, and a bias if there is one."""
    found = build.matmul(x, weight.transpose())
    return found if bias is None else found + bias


def _linear(call: Call) -> Tensor:
    return affine(call.tensor("input"), call.tensor("weight"), call.optional("bias"))


def _dot(call: Call) -> Tensor:
    return (call.tensor() * call.tensor("tensor")).sum(dtype=call.dtype)


def _matrix_by_vector(call: Call) -> Tensor:
    return build.matmul(call.tensor(), call.tensor("vec"))


def _outer(call: Call) -> Tensor:
    return call.tensor().unsqueeze(1) * call.tensor("vec2")


def _scores(call: Call, query: Tensor, key: Tensor) -> Tensor:
    """Scaled products of queries and keys, with masked entries -inf, in float32 at least."""
    width = query.shape[-1]
    if not call.has("scale") and not isinstance(width, int):
        call.fail(f"the width {width} of a head must be known, or the scale given")
    scale = call.number("scale") if call.has("scale") else 1 / math.sqrt(width) if isinstance(width, int) else 1.0
    # Scale both operands by the square root, to avoid overflow.
    root = math.sqrt(abs(scale))
    scores = build.matmul(query * math.copysign(root, scale), key.transpose() * root)
    mask = call.optional("attn_mask") if call.has("attn_mask") else call.optional("attn_bias")
    if mask is not None:
        scores = build.where(mask, scores, float("-inf")) if mask.dtype.is_bool else scores + mask.cast(scores.dtype)
    if not call.flag("is_causal"):
        return scores
    rows, columns = (build.arange(query.builder, dim) for dim in scores.shape[-2:])
    return build.where(columns <= rows.unsqueeze(1), scores, float("-inf"))


def _attention(call: Call) -> list[Tensor]:
    """The result, and the log-sum-exp of each row; a fully masked row is zeros."""
    query, key, value = (widened(call.tensor(name)) for name in ("query", "key", "value"))
    if call.number("dropout_p", 0.0) > 0:
        call.fail("attention with dropout is not supported")
    if _shares_heads(query, key):
        key, value = (_repeated(call, each, query) for each in (key, value))
    scores = _scores(call, query, key)
    most = scores.max([-1], True)
    finite = build.where(build.equal(most, float("-inf")), 0.0, most)
    raised = (scores - finite).exp()
    total = raised.sum([-1], True)
    weights = raised / build.where(build.equal(total, 0.0), 1.0, total)
    result = build.matmul(weights, value).cast(call.dtype)
    if not call.is_read(1):
        return [result]
    return [result, (total.log() + finite).squeeze([-1]).cast(call.dtype_of(1))]


def _shares_heads(query: Tensor, key: Tensor) -> bool:
    """Whether several query heads share one key head (grouped-query attention)."""
    if min(query.rank, key.rank) < 4:
        return False
    wanted, own = query.shape[-3], key.shape[-3]
    return isinstance(wanted, int) and isinstance(own, int) and wanted != own


def _repeated(call: Call, x: Tensor, query: Tensor) -> Tensor:
    """Repeat each key or value head for the query heads that share it."""
    own, wanted = x.shape[-3], query.shape[-3]
    if not isinstance(own, int) or not isinstance(wanted, int) or wanted % own:
        call.fail(f"{wanted} heads of queries do not share {own} heads of keys")
    *batch, _, rows, width = x.shape
    spread = x.unsqueeze(-3).expand([*batch, own, wanted // own, rows, width])
    return spread.reshape([*batch, wanted, rows, width])


def _attention_gradient(call: Call) -> list[Tensor]:
    """The gradients, with weights recomputed from the saved log-sum-exp (Dao 2022)."""
    gradient, query, key, value, out = (
        widened(call.tensor(name)) for name in ("grad_out", "query", "key", "value", "out")
    )
    heads = key.shape[-3]
    is_shared = _shares_heads(query, key)
    if is_shared:
        key, value = (_repeated(call, each, query) for each in (key, value))
    saved = widened(call.tensor("logsumexp"))
    if saved.rank == query.rank:
        # The weights: torch's decomposition of the forward operator returns them in place of the logarithms.
        weights = saved
    else:
        scores = _scores(call, query, key)
        weights = build.where(build.equal(scores, float("-inf")), 0.0, (scores - saved.unsqueeze(-1)).exp())
    width = query.shape[-1]
    scale = call.number("scale") if call.has("scale") else 1 / math.sqrt(width) if isinstance(width, int) else 1.0
    away = build.matmul(gradient, value.transpose()) - (gradient * out).sum([-1], True)
    inner = weights * away * scale
    found = [
        build.matmul(inner, key),
        build.matmul(inner.transpose(), query),
        build.matmul(weights.transpose(), gradient),
    ]
    if is_shared:
        found[1:] = [_summed_heads(each, heads) for each in found[1:]]
    return [each.cast(call.dtype_of(place, each.dtype)) for place, each in enumerate(found)]


def _summed_heads(x: Tensor, heads: Dim) -> Tensor:
    """The gradients of key or value heads, summed over the query heads that share each."""
    *batch, _, rows, width = x.shape
    return x.reshape([*batch, heads, -1, rows, width]).sum([-3])


def _only_result(call: Call) -> Tensor:
    return _attention(call)[0]


def _triangle(is_upper: bool) -> Operator:
    def apply(call: Call) -> Tensor:
        x = call.tensor()
        rows, columns = (build.arange(x.builder, dim) for dim in x.shape[-2:])
        over = columns - rows.unsqueeze(1)
        shift = call.integer("diagonal", 0)
        return build.where(over >= shift if is_upper else over <= shift, x, call.as_tensor(0, x.dtype))

    return apply


def _trace(call: Call) -> Tensor:
    x = call.tensor()
    rows, columns = (build.arange(x.builder, dim) for dim in x.shape)
    zero = call.as_tensor(0, x.dtype)
    return build.where(build.equal(rows.unsqueeze(1), columns), x, zero).sum(dtype=call.dtype)


def _cross_distances(call: Call) -> Tensor:
    """`cdist` of two sets of vectors, by the differences of all pairs."""
    x1, x2 = call.tensor("x1"), call.tensor("x2")
    return _length(build.absolute(x1.unsqueeze(-2) - x2.unsqueeze(-3)), call.number("p"))


def _distances_within(call: Call) -> Tensor:
    """`pdist`: the distances of each vector to those after it."""
    x = call.tensor()
    rows = x.shape[0]
    if not isinstance(rows, int) or rows > MAX_ROWS:
        call.fail(f"the pairs of {rows} vectors must be known, and of at most {MAX_ROWS} of them")
    first, second = (call.parameter(places) for places in np.triu_indices(rows, 1))
    return _length(build.absolute(build.take(x, first, 0) - build.take(x, second, 0)), call.number("p", 2.0))


def _length(away: Tensor, power: float) -> Tensor:
    """The p-norm of absolute differences along the last axis."""
    if power == 2:
        return (away * away).sum([-1]).sqrt()
    if power == 1:
        return away.sum([-1])
    if math.isinf(power):
        return build.maximum(away.max([-1]), 0.0)
    if power == 0:
        return build.not_equal(away, 0.0).cast(away.dtype).sum([-1])
    return (away**power).sum([-1]) ** (1 / power)


def _three(call: Call) -> Tensor:
    """The sum of products of three tensors, each with axes of 1 added, as in `nn.Bilinear`."""
    given = [call.tensor(f"i{number}").cast(call.dtype) for number in (1, 2, 3)]
    added = [set(call.integers(f"expand{number}")) for number in (1, 2, 3)]
    summed = set(call.integers("sumdim"))
    first, second, third = (set(range(each.rank + len(own))) - own for each, own in zip(given, added, strict=True))
    if not summed <= second or not (summed - third) <= first:
        call.fail("a sum over an axis of one of three factors is not supported")
    between = (first | second) - (summed - third)
    product = build.einsum(f"{_letters(first)},{_letters(second)}->{_letters(between)}", given[0], given[1])
    result = (between | third) - summed
    return build.einsum(f"{_letters(between)},{_letters(third)}->{_letters(result)}", product, given[2])


def _letters(axes: set[int]) -> str:
    return "".join(chr(ord("a") + axis) for axis in sorted(axes))


OPERATORS: dict[str, Operator] = {
    "aten._cdist_forward.default": _cross_distances,
    "aten._pdist_forward.default": _distances_within,
    "aten._scaled_dot_product_flash_attention_for_cpu.default": _attention,
    "aten._scaled_dot_product_flash_attention_for_cpu_backward.default": _attention_gradient,
    "aten._trilinear.default": _three,
    "aten.addbmm.default": _summed_batches,
    "aten.addmm.default": _added("mat1", "mat2"),
    "aten.addmv.default": _added("mat", "vec"),
    "aten.baddbmm.default": _added("batch1", "batch2"),
    "aten.bmm.default": _product("self", "mat2"),
    "aten.dot.default": _dot,
    "aten.linear.default": _linear,
    "aten.matmul.default": _product("self", "other"),
    "aten.mm.default": _product("self", "mat2"),
    "aten.mv.default": _matrix_by_vector,
    "aten.outer.default": _outer,
    "aten.scaled_dot_product_attention.default": _only_result,
    "aten.trace.default": _trace,
    "aten.tril.default": _triangle(False),
    "aten.triu.default": _triangle(True),
    "aten.vdot.default": lambda call: (call.tensor() * call.tensor("other")).sum(dtype=call.dtype),
}
