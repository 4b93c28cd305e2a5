"""Convolutions, transposed ones, and the gradients of both."""

from __future__ import annotations

from collections.abc import Sequence

from ... import build
from ...build import Tensor
from ...build.contraction import sum_of_products
from ...build.windows import grouped_windows, window
from ...expr import Dim, floordiv, mul, sub
from ..composed.spreading import conv_of_spread, mirrored
from .call import Call, Operator


def _per_axis(call: Call, name: str, rank: int, default: int) -> list[int]:
    """One entry per spatial axis; a single entry applies to all."""
    given = call.integers(name, [default])
    return given * rank if len(given) == 1 else given


def _convolution(call: Call) -> Tensor:
    x, weight, bias = call.tensor("input"), call.tensor("weight"), call.optional("bias")
    rank = weight.rank - 2
    if x.rank == rank + 1:
        return _convolved(call, x.unsqueeze(0), weight, bias, rank).squeeze(0)
    return _convolved(call, x, weight, bias, rank)


def _convolved(call: Call, x: Tensor, weight: Tensor, bias: Tensor | None, rank: int) -> Tensor:
    stride, padding, dilation = (
        _per_axis(call, name, rank, default) for name, default in (("stride", 1), ("padding", 0), ("dilation", 1))
    )
    groups = call.integer("groups", 1)
    if call.flag("transposed"):
        extra = _per_axis(call, "output_padding", rank, 0)
        return transposed(call, x, weight, bias, stride, padding, dilation, extra, groups)
    return build.conv(x, weight, bias, stride, padding, dilation, groups)


def _transposed_convolution(call: Call) -> Tensor:
    """`conv_transpose1d` to `3d`, which occur in exports that are not decomposed."""
    x, weight = call.tensor("input"), call.tensor("weight")
    rank = weight.rank - 2
    stride, padding, extra, dilation = (
        _per_axis(call, name, rank, default)
        for name, default in (("stride", 1), ("padding", 0), ("output_padding", 0), ("dilation", 1))
    )
    bias, groups = call.optional("bias"), call.integer("groups", 1)
    if x.rank == rank + 1:
        return transposed(call, x.unsqueeze(0), weight, bias, stride, padding, dilation, extra, groups).squeeze(0)
    return transposed(call, x, weight, bias, stride, padding, dilation, extra, groups)


def transposed(
    call: Call,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    extra: Sequence[Dim],
    groups: int,
) -> Tensor:
    """A transposed convolution: each element of the input adds the scaled kernel to the output.

    `padding` is cropped at both ends, `extra` elements are added at the end.
    """
    kernel = [dim for dim in weight.shape[2:] if isinstance(dim, int)]
    if len(kernel) != weight.rank - 2:
        call.fail(f"the kernel of weights {weight.shape} must be known")
    widths: list[tuple[Dim, Dim]] = []
    for size, step, cut, more in zip(kernel, dilation, padding, extra, strict=True):
        reach = (size - 1) * step
        widths.append((reach - cut, more + (reach - cut)))
    return conv_of_spread(x, mirrored(weight, groups), bias, stride, widths, dilation, groups)


def _gradients(call: Call) -> list[Tensor]:
    """The gradients of the input, the weights and the bias; unread ones are not computed."""
    gradient, x, weight = (call.tensor(name) for name in ("grad_output", "input", "weight"))
    rank = weight.rank - 2
    stride, padding, dilation = (_per_axis(call, name, rank, 1) for name in ("stride", "padding", "dilation"))
    groups, is_transposed = call.integer("groups", 1), call.flag("transposed")
    unread = gradient
    of_input = unread
    if call.is_read(0) and is_transposed:
        of_input = build.conv(gradient, weight, None, stride, padding, dilation, groups)
    elif call.is_read(0):
        extra = _left_over(x, gradient, weight, stride, padding, dilation)
        of_input = transposed(call, gradient, weight, None, stride, padding, dilation, extra, groups)
    of_weight = unread
    if call.is_read(1):
        seen, steps = (gradient, x) if is_transposed else (x, gradient)
        of_weight = _weight_gradient(seen, steps, weight, stride, padding, dilation, groups)
    of_bias = gradient.sum([0, *range(2, gradient.rank)]) if call.is_read(2) else unread
    return [of_input, of_weight, of_bias]


def _left_over(
    x: Tensor,
    gradient: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> list[Dim]:
    """The number of elements at the end of each axis that no window of the convolution covers."""
    found: list[Dim] = []
    for axis, (step, around, apart) in enumerate(zip(stride, padding, dilation, strict=True), start=2):
        size = weight.shape[axis]
        reach = mul(sub(size, 1), apart)
        found.append(sub(x.shape[axis] + 2 * around, mul(sub(gradient.shape[axis], 1), step) + reach + 1))
    return found


def _weight_gradient(
    seen: Tensor,
    steps: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """The gradient of each kernel tap: the sum over windows of `seen`, times the matching elements of `steps`."""
    rank = weight.rank - 2
    kernel = [dim for dim in weight.shape[2:] if isinstance(dim, int)]
    padded = build.pad(seen, [(0, 0), (0, 0), *((width, width) for width in padding)])
    over = window(padded, kernel, stride, dilation, rank)
    windows = grouped_windows(padded, over, groups)
    batch, outputs, *counts = steps.shape
    per_group: Dim = floordiv(outputs, groups)
    # (batch, group, output, *counts, input, *kernel): sum over the batch and the counts.
    moved = steps.reshape([batch, groups, per_group, *counts, *(1 for _ in range(rank + 1))])
    summed = sum_of_products(windows, moved, [0, *range(3, 3 + rank)])
    return summed.reshape(weight.shape)


OPERATORS: dict[str, Operator] = {
    "aten.conv1d.default": _convolution,
    "aten.conv2d.default": _convolution,
    "aten.conv3d.default": _convolution,
    "aten.conv_transpose1d.default": _transposed_convolution,
    "aten.conv_transpose2d.input": _transposed_convolution,
    "aten.conv_transpose3d.input": _transposed_convolution,
    "aten.convolution.default": _convolution,
    "aten.convolution_backward.default": _gradients,
}
