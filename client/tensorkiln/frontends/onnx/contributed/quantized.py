"""Operators on quantised values: the numbers that these stand for, an operator, and its result quantised again."""

from __future__ import annotations

from collections.abc import Callable

from .... import build
from ....build import Tensor
from ....dtypes import DType
from ..node import Node
from ..pooling import averages
from ..quantization import aligned, centred, has_zero, quantized, single
from ..value import Value


def _numbers(node: Node, place: int, scale: int, zero: int) -> Tensor:
    """The operand's numbers in float32, for one scale and one zero point."""
    return centred(node, place, zero, single).cast(DType.FLOAT32) * single(node.tensor(scale)).cast(DType.FLOAT32)


def _result(node: Node, x: Tensor, scale: int, zero: int, like: int) -> Tensor:
    """`x` quantised to the dtype of the input at `like`."""
    offset = single(node.tensor(zero)) if has_zero(node, zero) else None
    return quantized(x, single(node.tensor(scale)), offset, node.tensor(like).dtype)


def _unary(function: Callable[[Node, Tensor], Tensor]) -> Callable[[Node], Value]:
    return lambda node: _result(node, function(node, _numbers(node, 0, 1, 2)), 3, 4, 0)


def _binary(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Node], Value]:
    return lambda node: _result(node, function(_numbers(node, 0, 1, 2), _numbers(node, 3, 4, 5)), 6, 7, 0)


def _leaky_relu(node: Node, x: Tensor) -> Tensor:
    return build.leaky_relu(x, node.number("alpha", 0.01))


def _average_pool(node: Node, x: Tensor) -> Tensor:
    _refuse_last(node)
    return averages(node, x, node.integer("count_include_pad", 0) == 1)


def _global_average_pool(node: Node, x: Tensor) -> Tensor:
    _refuse_last(node)
    return x.mean(range(2, x.rank), keepdims=True)


def _refuse_last(node: Node) -> None:
    if node.integer("channels_last", 0):
        node.fail("channels_last is not supported")


def _softmax(node: Node, x: Tensor) -> Tensor:
    """Along an axis; before opset 13 of Softmax, over all axes from it on."""
    axis = node.integer("axis", -1) % x.rank
    return build.softmax(x, [axis] if node.integer("opset") >= 13 else range(axis, x.rank))


def _concat(node: Node) -> Value:
    """Inputs are the result's scale and zero point, then each part with its own."""
    if len(node.inputs) % 3 != 2 or len(node.inputs) < 5:
        node.invalid(f"{len(node.inputs)} inputs are not a scale, a zero point, and three for each part")
    parts = [_numbers(node, place, place + 1, place + 2) for place in range(2, len(node.inputs), 3)]
    return _result(node, build.cat(parts, node.integer("axis")), 0, 1, 1)


def _where(node: Node) -> Value:
    chosen = build.where(node.tensor(0), _numbers(node, 1, 2, 3), _numbers(node, 4, 5, 6))
    return _result(node, chosen, 7, 8, 1)


def _axis(node: Node, x: Tensor) -> int:
    """The axis of scales of rank 1; a single scale needs none."""
    return node.integer("axis", 1) % max(x.rank, 1)


def _quantize(node: Node) -> Value:
    x, scale = node.tensor(0), node.tensor(1)
    axis = _axis(node, x)
    zero = node.tensor(2) if node.has(2) else None
    offset = None if zero is None else aligned(node, zero, x, axis, 0)
    dtype = DType.UINT8 if zero is None else zero.dtype
    return node.shaped(x.shape, quantized(x, aligned(node, scale, x, axis, 0), offset, dtype))


def _dequantize(node: Node) -> Value:
    x, scale = node.tensor(0), node.tensor(1)
    axis = _axis(node, x)
    whole = centred(node, 0, 2, lambda zero: aligned(node, zero, x, axis, 0))
    numbers = whole.cast(DType.FLOAT32) * aligned(node, scale, x, axis, 0).cast(DType.FLOAT32)
    return node.shaped(x.shape, numbers.cast(scale.dtype))


OPERATORS: dict[str, Callable[[Node], Value]] = {
    "DequantizeLinear": _dequantize,
    "QLinearAdd": _binary(lambda a, b: a + b),
    "QLinearAveragePool": _unary(_average_pool),
    "QLinearConcat": _concat,
    "QLinearGlobalAveragePool": _unary(_global_average_pool),
    "QLinearLeakyRelu": _unary(_leaky_relu),
    "QLinearMul": _binary(lambda a, b: a * b),
    "QLinearSigmoid": _unary(lambda _, x: build.sigmoid(x)),
    "QLinearSoftmax": _unary(_softmax),
    "QLinearWhere": _where,
    "QuantizeLinear": _quantize,
}
