"""Operators that work element by element."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from onnx import TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from ... import build
from ...build import Tensor
from ...dtypes import DType
from .legacy import channel_slope, operands
from .node import Node
from .parameters import element_type
from .value import Value

Operator = Callable[[Node], Value]


def _unary(function: Callable[[Tensor], Tensor]) -> Operator:
    return lambda node: function(node.tensor(0))


def _binary(function: Callable[[Tensor, Tensor], Tensor]) -> Operator:
    return lambda node: function(*operands(node))


def _variadic(function: Callable[[Tensor, Tensor], Tensor]) -> Operator:
    return lambda node: reduce(function, node.tensors())


def _mean(node: Node) -> Value:
    tensors = node.tensors()
    return reduce(lambda a, b: a + b, tensors) / len(tensors)


def _divide(left: Tensor, right: Tensor) -> Tensor:
    """Divide; integers truncate, as in C."""
    return left / right if left.dtype.is_float else build.truncating_divide(left, right)


def _modulo(node: Node) -> Value:
    left, right = node.tensor(0), node.tensor(1)
    return build.truncating_remainder(left, right) if node.integer("fmod", 0) else left % right


def _power(node: Node) -> Value:
    """Pow, with the base's element type as the result's."""
    base, exponent = operands(node)
    if base.dtype is exponent.dtype:
        return base**exponent
    wide = DType.FLOAT64 if DType.FLOAT64 in (base.dtype, exponent.dtype) else DType.FLOAT32
    if exponent.dtype.is_integer and base.dtype.is_integer:
        return base ** exponent.cast(base.dtype)
    return (base.cast(wide) ** exponent.cast(wide)).cast(base.dtype)


def _shift(node: Node) -> Value:
    value, amount = node.tensor(0), node.tensor(1)
    return value << amount if node.choice("direction", ("LEFT", "RIGHT")) == "LEFT" else value >> amount


def _clip(node: Node) -> Value:
    """Limits are attributes before opset 11 and inputs of rank 0 from then on."""
    x = node.tensor(0)
    if node.opset >= 11:
        low, high = (_limit(node, place) if node.has(place) else None for place in (1, 2))
        return x.clip(low, high)
    low, high = (node.number(name) if node.is_set(name) else None for name in ("min", "max"))
    return x.clip(low, high)


def _limit(node: Node, place: int) -> Tensor:
    """A limit of a Clip; one of the model is a constant, although it may be an initializer, so that an activation is as
    fast as one without limits.
    """
    limit = node.value(place)
    if isinstance(limit, Tensor) or limit.size != 1 or limit.dtype == object:
        return node.tensor(place).reshape()
    return node.builder.constant(limit.reshape(()), element_type(limit.dtype))


def _leaky_relu(node: Node) -> Value:
    return build.leaky_relu(node.tensor(0), node.number("alpha", 0.01))


def _prelu(node: Node) -> Value:
    x = node.tensor(0)
    slope = channel_slope(node, x, node.tensor(1))
    return node.shaped(x.shape, build.where(x < 0, x * slope, x))


def _selu(node: Node) -> Value:
    """Selu. ONNX's defaults are the constants of Klambauer et al. 2017 in float32."""
    alpha = node.number("alpha", 1.67326319217681884765625)
    return build.elu(node.tensor(0), alpha) * node.number("gamma", 1.05070102214813232421875)


def _elu(node: Node) -> Value:
    return build.elu(node.tensor(0), node.number("alpha", 1.0))


def _hard_sigmoid(node: Node) -> Value:
    return (node.tensor(0) * node.number("alpha", 0.2) + node.number("beta", 0.5)).clip(0.0, 1.0)


def _hard_swish(node: Node) -> Value:
    x = node.tensor(0)
    return x * (x * (1 / 6) + 0.5).clip(0.0, 1.0)


def _gelu(node: Node) -> Value:
    form = node.choice("approximate", ("none", "tanh"), "none")
    return build.gelu(node.tensor(0), "tanh") if form == "tanh" else build.gelu(node.tensor(0))


def _where(node: Node) -> Value:
    return build.where(node.tensor(0), node.tensor(1), node.tensor(2))


def _cast(node: Node) -> Value:
    source, target, saturate = node.value(0), element_type(cast_target(node)), saturates(node)
    if target.is_integer and isinstance(source, np.ndarray) and source.dtype == object:
        return node.parameters.cast_dims(source, target)
    return node.tensor(0).cast(target, saturate=saturate)


def _cast_like(node: Node) -> Value:
    node.ignore("round_mode")
    like = node.value(1)
    target = like.dtype if isinstance(like, Tensor) else element_type(like.dtype)
    return node.tensor(0).cast(target, saturate=saturates(node))


def _bit_cast(node: Node) -> Value:
    return build.bitcast(node.tensor(0), element_type(cast_target(node)))


def _is_inf(node: Node) -> Value:
    x = node.tensor(0)
    wide = x if x.dtype.is_float else x.cast(DType.FLOAT32)
    infinite = float("inf")
    above = build.equal(wide, infinite if node.integer("detect_positive", 1) else float("nan"))
    below = build.equal(wide, -infinite if node.integer("detect_negative", 1) else float("nan"))
    return above | below


def saturates(node: Node) -> bool:
    """Whether a cast to a narrow float clamps to its greatest number, instead of giving infinity or NaN."""
    return bool(node.integer("saturate", 1))


def cast_target(node: Node) -> np.dtype[Any]:
    """The target type of a Cast. UnsupportedGraphError for strings, InvalidGraphError for an unknown type."""
    node.ignore("round_mode")  # Only for float8_e8m0fnu, which graphs do not have.
    kind = node.integer("to")
    if kind == TensorProto.STRING:
        node.fail("the element type string is not supported")
    if kind == TensorProto.UNDEFINED or kind not in TensorProto.DataType.values():
        node.invalid(f"ONNX knows no element type {kind}")
    return tensor_dtype_to_np_dtype(kind)


OPERATORS: dict[str, Operator] = {
    "Abs": _unary(build.absolute),
    "Add": _binary(lambda a, b: a + b),
    "And": _binary(lambda a, b: a & b),
    "BitCast": _bit_cast,
    "BitShift": _shift,
    "BitwiseAnd": _binary(lambda a, b: a & b),
    "BitwiseNot": _unary(lambda x: ~x),
    "BitwiseOr": _binary(lambda a, b: a | b),
    "BitwiseXor": _binary(lambda a, b: a ^ b),
    "Cast": _cast,
    "CastLike": _cast_like,
    "Ceil": _unary(build.ceil),
    "Clip": _clip,
    "Cos": _unary(build.cos),
    "Div": _binary(_divide),
    "Elu": _elu,
    "Equal": _binary(build.equal),
    "Erf": _unary(build.erf),
    "Exp": _unary(build.exp),
    "Floor": _unary(build.floor),
    "Gelu": _gelu,
    "Greater": _binary(lambda a, b: a > b),
    "GreaterOrEqual": _binary(lambda a, b: a >= b),
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _hard_swish,
    "IsInf": _is_inf,
    "IsNaN": _unary(lambda x: build.is_nan(x.cast(x.dtype.wide))),
    "LeakyRelu": _leaky_relu,
    "Less": _binary(build.less),
    "LessOrEqual": _binary(lambda a, b: a <= b),
    "Log": _unary(build.log),
    "Max": _variadic(build.maximum),
    "Mean": _mean,
    "Min": _variadic(build.minimum),
    "Mod": _modulo,
    "Mul": _binary(lambda a, b: a * b),
    "Neg": _unary(lambda x: -x),
    "Not": _unary(lambda x: ~x),
    "Or": _binary(lambda a, b: a | b),
    "PRelu": _prelu,
    "Pow": _power,
    "Reciprocal": _unary(build.reciprocal),
    "Relu": _unary(build.relu),
    "Round": _unary(build.rint),
    "Selu": _selu,
    "Sigmoid": _unary(build.sigmoid),
    "Sign": _unary(build.sign),
    "Sin": _unary(build.sin),
    "Softplus": _unary(build.softplus),
    "Softsign": _unary(lambda x: x / (build.absolute(x) + 1.0)),
    "Sqrt": _unary(build.sqrt),
    "Sub": _binary(lambda a, b: a - b),
    "Sum": _variadic(lambda a, b: a + b),
    "Tan": _unary(build.tan),
    "Tanh": _unary(build.tanh),
    "Where": _where,
    "Xor": _binary(lambda a, b: a ^ b),
}
