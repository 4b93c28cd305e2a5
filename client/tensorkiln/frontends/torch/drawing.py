"""Random numbers by Threefry, from a key that is an input of the graph: equal keys give equal numbers.

They differ from the numbers of torch's own generators.
"""

from __future__ import annotations

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ..composed.drawing import uniform_between
from ..composed.ranking import first_in_order
from .call import Call, Operator


def _uniform(call: Call) -> Tensor:
    return build.random_uniform(call.builder, call.result_shape(), call.key(), call.dtype)


def _uniform_between(call: Call) -> Tensor:
    low, high = call.number("from", 0.0), call.number("to", 1.0)
    return uniform_between(_uniform(call), low, high, call.fail)


def _normal(call: Call) -> Tensor:
    return build.random_normal(call.builder, call.result_shape(), call.key(), call.dtype)


def _normal_like(call: Call) -> Tensor:
    return _normal(call) * call.number("std", 1.0) + call.number("mean", 0.0)


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
    "aten.dropout.default": _inference_dropout,
    "aten.native_dropout.default": _dropout,
    "aten.normal_functional.default": _normal_like,
    "aten.rand.default": _uniform,
    "aten.rand_like.default": _uniform,
    "aten.randn.default": _normal,
    "aten.randn_like.default": _normal,
    "aten.randperm.default": _permutation,
    "aten.uniform.default": _uniform_between,
}
RANDOM = frozenset(OPERATORS) - {"aten.dropout.default"}
"""Operators that need the input `random_key`."""
