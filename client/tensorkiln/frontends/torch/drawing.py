"""Random numbers by Threefry, from a key that is an input of the graph: equal keys give equal numbers.

They differ from the numbers of torch's own generators.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ... import build
from ...build import Tensor
from ...build.conversion import widened
from ...dtypes import DType
from ...expr import Dim, sub
from ..composed.drawing import uniform_between
from ..composed.ranking import first_in_order
from .call import Call, Operator

HALF_STEP: Final = 2.0**-25
"""Half the step of uniform float32 numbers: the logarithms of 0 and the inverse of 0 are infinite."""


def _uniform(call: Call) -> Tensor:
    return build.random_uniform(call.builder, call.result_shape(), call.key(), call.dtype)


def _uniform_between(call: Call) -> Tensor:
    low, high = call.number("from", 0.0), call.number("to", 1.0)
    return uniform_between(_uniform(call), low, high, call.fail)


def _normal(call: Call) -> Tensor:
    return build.random_normal(call.builder, call.result_shape(), call.key(), call.dtype)


def _normal_like(call: Call) -> Tensor:
    return _normal(call) * call.number("std", 1.0) + call.number("mean", 0.0)


def _normal_of(call: Call) -> Tensor:
    """Normal numbers whose means and deviations are tensors or numbers."""
    mean, deviation = (call.operand(name) if call.has(name) else default for name, default in (("mean", 0), ("std", 1)))
    drawn = _normal(call)
    return drawn * call.as_tensor(deviation, drawn.dtype) + call.as_tensor(mean, drawn.dtype)


def _exponential(call: Call) -> Tensor:
    return (_waits(call, call.result_shape(), _wide(call)) / call.number("lambd", 1.0)).cast(call.dtype)


def _waits(call: Call, shape: Sequence[Dim], dtype: DType) -> Tensor:
    """Exponential numbers with the mean 1; never 0, like in torch."""
    drawn = build.random_uniform(call.builder, shape, call.key(), dtype)
    return build.maximum(-build.log(1.0 - drawn), HALF_STEP)


def _wide(call: Call) -> DType:
    return DType.FLOAT64 if call.dtype is DType.FLOAT64 else DType.FLOAT32


def _geometric(call: Call) -> Tensor:
    """The number of trials up to the first success, at least 1."""
    chance = call.number("p")
    failed = math.log1p(-chance) if chance < 1 else -math.inf
    waits = _waits(call, call.result_shape(), _wide(call))
    return build.maximum(build.ceil(waits / -failed), 1.0).cast(call.dtype)


def _log_normal(call: Call) -> Tensor:
    return build.exp(_normal(call) * call.number("std", 2.0) + call.number("mean", 1.0))


def _cauchy(call: Call) -> Tensor:
    drawn = build.random_uniform(call.builder, call.result_shape(), call.key(), _wide(call))
    found = build.tan((drawn - 0.5) * math.pi) * call.number("sigma", 1.0) + call.number("median", 0.0)
    return found.cast(call.dtype)


def _whole(call: Call) -> Tensor:
    """Integers from `low` to below `high`, which may depend on symbols."""
    names = ("low", "high") if call.has("low") or call.has("high") else ("from", "to")
    low = call.dim(names[0], 0)
    if not call.has(names[1]):
        call.fail("random integers need an upper limit: give one")
    span = sub(call.dim(names[1]), low)
    least, most = call.builder.bounds(span)
    if least < 1 or most > 1 << 53:
        call.fail(f"random integers of a range of {span} are not supported: it must be from 1 to 2^53")
    count, first = (build.dim_value(call.builder, dim, DType.FLOAT64) for dim in (span, low))
    drawn = build.random_uniform(call.builder, call.result_shape(), call.key(), DType.FLOAT64)
    # The product may be rounded up to `count`.
    return (build.minimum(build.floor(drawn * count), count - 1.0) + first).cast(DType.INT64).cast(call.dtype)


def _classes(call: Call) -> Tensor:
    """Classes by their weights, along the last axis: the greatest quotients of a weight and an exponential number."""
    weights, count = call.tensor(), call.integer("num_samples")
    wide = widened(weights)
    extent = wide.shape[-1]
    if call.flag("replacement"):
        shape = [*wide.shape[:-1], count, extent]
        return build.argmax(wide.unsqueeze([-2]) / _waits(call, shape, wide.dtype), -1)
    if call.builder.bounds(extent)[0] < count:
        call.fail(f"{count} different ones of {extent} classes may be more than there are")
    return first_in_order(wide / _waits(call, wide.shape, wide.dtype), wide.rank - 1, count, True, call.fail)[1]


def _chance(call: Call) -> Tensor:
    """Bernoulli: 1 with the given probability, one for all elements or one for each."""
    chance = call.operand("p") if call.has("p") else call.tensor()
    drawn = build.random_uniform(call.builder, call.result_shape(), call.key())
    return (drawn < call.as_tensor(chance, drawn.dtype)).cast(call.dtype)


def _dropout(call: Call) -> list[Tensor]:
    """Dropout, with kept elements scaled to preserve the mean, and the mask of kept elements."""
    x, chance = call.tensor("input"), call.number("p")
    if call.has("train") and not call.flag("train"):
        return [x, build.ones(x.builder, x.shape, "bool")]
    drawn = build.random_uniform(call.builder, x.shape, call.key())
    kept = drawn >= chance
    scaled = x * (1.0 / (1.0 - chance)) if chance < 1.0 else x
    return [build.where(kept, scaled, 0.0), kept]


def _inference_dropout(call: Call) -> Tensor:
    if call.flag("train") and call.number("p") > 0:
        return _dropout(call)[0]
    return call.tensor("input")


def _permutation(call: Call) -> Tensor:
    """A random permutation: the sorting order of random numbers."""
    drawn = build.random_uniform(call.builder, call.result_shape(), call.key(), DType.FLOAT64)
    return first_in_order(drawn, 0, drawn.shape[0], False, call.fail)[1].cast(call.dtype)


OPERATORS: dict[str, Operator] = {
    "aten.bernoulli.default": _chance,
    "aten.bernoulli.p": _chance,
    "aten.cauchy.default": _cauchy,
    "aten.dropout.default": _inference_dropout,
    "aten.exponential.default": _exponential,
    "aten.geometric.default": _geometric,
    "aten.log_normal.default": _log_normal,
    "aten.multinomial.default": _classes,
    "aten.native_dropout.default": _dropout,
    "aten.normal.Tensor_Tensor": _normal_of,
    "aten.normal.Tensor_float": _normal_of,
    "aten.normal.float_Tensor": _normal_of,
    "aten.normal.float_float": _normal_of,
    "aten.normal_functional.default": _normal_like,
    "aten.rand.default": _uniform,
    "aten.rand_like.default": _uniform,
    "aten.randint.default": _whole,
    "aten.randint.low": _whole,
    "aten.randint_like.default": _whole,
    "aten.randint_like.low_dtype": _whole,
    "aten.randn.default": _normal,
    "aten.randn_like.default": _normal,
    "aten.random.to": _whole,
    "aten.randperm.default": _permutation,
    "aten.uniform.default": _uniform_between,
}
RANDOM = frozenset(OPERATORS) - {"aten.dropout.default"}
"""Operators that need the input `random_key`."""
