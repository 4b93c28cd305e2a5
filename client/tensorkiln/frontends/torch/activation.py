"""Activation functions, and the gradients for which torch has operators."""

from __future__ import annotations

import math
from collections.abc import Callable

from ... import build
from ...build import Tensor
from ...build.conversion import widened
from ..composed.trigonometry import in_wide_float
from .call import Call, Operator


def _plain(function: Callable[[Tensor], Tensor]) -> Operator:
    return lambda call: function(call.tensor().cast(call.dtype))


def _elu(call: Call) -> Tensor:
    """`scale * alpha * (exp(input_scale * x) - 1)` below zero, `scale * x` above."""
    alpha, scale, inner = call.number("alpha", 1.0), call.number("scale", 1.0), call.number("input_scale", 1.0)

    def apply(x: Tensor) -> Tensor:
        return build.where(x > 0.0, x * scale, build.expm1(x * inner) * (alpha * scale))

    # NaN takes the branch below zero, and stays NaN.
    return in_wide_float(apply, call.tensor())


def _selu(call: Call) -> Tensor:
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    return in_wide_float(lambda x: build.where(x > 0.0, x * scale, build.expm1(x) * (alpha * scale)), call.tensor())


def _leaky_relu(call: Call) -> Tensor:
    x, slope = call.tensor(), call.number("negative_slope", 0.01)
    return build.where(x > 0.0, x, x * slope)


def _hard_tanh(call: Call) -> Tensor:
    x = call.tensor()
    low, high = (
        call.as_tensor(call.number(name, given), x.dtype) for name, given in (("min_val", -1.0), ("max_val", 1.0))
    )
    return x.clip(low, high)


def _gelu(call: Call) -> Tensor:
    return build.gelu(call.tensor(), "tanh" if call.text("approximate", "none") == "tanh" else "none")


def _hard_sigmoid(x: Tensor) -> Tensor:
    return (x + 3.0).clip(0.0, 6.0) / 6.0


def _hard_swish(x: Tensor) -> Tensor:
    return x * (x + 3.0).clip(0.0, 6.0) / 6.0


def _softplus(call: Call) -> Tensor:
    """Softplus; above the threshold the operand itself."""
    beta, threshold = call.number("beta", 1.0), call.number("threshold", 20.0)

    def apply(x: Tensor) -> Tensor:
        scaled = x * beta
        return build.where(scaled > threshold, x, build.softplus(scaled) / beta)

    return in_wide_float(apply, call.tensor())


def _log_sigmoid(call: Call) -> list[Tensor]:
    """The log-sigmoid, and the buffer that torch's CPU keeps for the gradient: exp(-|x|)."""
    x = call.tensor()
    found = in_wide_float(lambda y: build.minimum(y, 0.0) - build.log1p((-build.absolute(y)).exp()), x)
    return [found, in_wide_float(lambda y: (-build.absolute(y)).exp(), x)]


def _glu(call: Call) -> Tensor:
    x = call.tensor()
    axis = call.axis(x, default=-1)
    size = x.shape[axis]
    half = size // 2
    first, second = build.split(x, [half, size - half], axis)
    return first * build.sigmoid(second)


def _threshold(call: Call) -> Tensor:
    x = call.tensor()
    limit, value = (call.as_tensor(call.number(name), x.dtype) for name in ("threshold", "value"))
    return build.where(x <= limit, value, x)


def _prelu(call: Call) -> Tensor:
    x, weight = call.tensor(), call.tensor("weight")
    slope = weight.reshape([]) if weight.shape == (1,) else weight.reshape([-1, *(1,) * (x.rank - 2)])
    return build.where(x > 0.0, x, x * slope)


def _threshold_gradient(call: Call) -> Tensor:
    gradient, x = call.tensor("grad_output"), call.tensor()
    return build.where(x <= call.as_tensor(call.number("threshold"), x.dtype), 0, gradient)


def _gelu_gradient(call: Call) -> Tensor:
    gradient, x = call.tensor("grad_output"), call.tensor()
    is_tanh = call.text("approximate", "none") == "tanh"
    return in_wide_float(_tanh_slope if is_tanh else _exact_slope, widened(x)).cast(x.dtype) * gradient


def _exact_slope(x: Tensor) -> Tensor:
    """The derivative of `x * Φ(x)`: the distribution function plus `x` times the density."""
    distribution = (build.erf(x * math.sqrt(0.5)) + 1.0) * 0.5
    return distribution + x * (x * x * -0.5).exp() * (1 / math.sqrt(2 * math.pi))


def _tanh_slope(x: Tensor) -> Tensor:
    factor, cubic = math.sqrt(2 / math.pi), 0.044715
    t = build.tanh((x + x * x * x * cubic) * factor)
    inner = (x * x * (3 * cubic) + 1.0) * factor
    return (t + 1.0) * 0.5 + x * 0.5 * (1.0 - t * t) * inner


def _sigmoid_gradient(call: Call) -> Tensor:
    gradient, y = call.tensor("grad_output"), call.tensor("output")
    return gradient * (1.0 - y) * y


def _tanh_gradient(call: Call) -> Tensor:
    gradient, y = call.tensor("grad_output"), call.tensor("output")
    return gradient * (1.0 - y * y)


def _silu_gradient(call: Call) -> Tensor:
    gradient, x = call.tensor("grad_output"), call.tensor()
    s = build.sigmoid(x)
    return gradient * (s * (x * (1.0 - s) + 1.0))


def _softmax_gradient(call: Call) -> Tensor:
    gradient, y = call.tensor("grad_output"), call.tensor("output")
    inner = gradient * y
    return (inner - y * inner.sum(call.axes(y), True)).cast(call.dtype)


def _log_softmax_gradient(call: Call) -> Tensor:
    gradient, y = call.tensor("grad_output"), call.tensor("output")
    return (gradient - y.exp() * gradient.sum(call.axes(y), True)).cast(call.dtype)


OPERATORS: dict[str, Operator] = {
    "aten._log_softmax_backward_data.default": _log_softmax_gradient,
    "aten._prelu_kernel.default": _prelu,
    "aten._softmax_backward_data.default": _softmax_gradient,
    "aten.elu.default": _elu,
    "aten.gelu.default": _gelu,
    "aten.gelu_backward.default": _gelu_gradient,
    "aten.glu.default": _glu,
    "aten.hardsigmoid.default": _plain(_hard_sigmoid),
    "aten.hardswish.default": _plain(_hard_swish),
    "aten.hardtanh.default": _hard_tanh,
    "aten.leaky_relu.default": _leaky_relu,
    "aten.log_sigmoid_forward.default": _log_sigmoid,
    "aten.mish.default": _plain(lambda x: in_wide_float(lambda y: y * build.tanh(build.softplus(y)), x)),
    "aten.prelu.default": _prelu,
    "aten.relu.default": _plain(build.relu),
    "aten.relu6.default": _plain(lambda x: x.clip(0, 6)),
    "aten.selu.default": _selu,
    "aten.sigmoid.default": _plain(build.sigmoid),
    "aten.sigmoid_backward.default": _sigmoid_gradient,
    "aten.silu.default": _plain(build.silu),
    "aten.silu_backward.default": _silu_gradient,
    "aten.softplus.default": _softplus,
    "aten.tanh.default": _plain(build.tanh),
    "aten.tanh_backward.default": _tanh_gradient,
    "aten.threshold.default": _threshold,
    "aten.threshold_backward.default": _threshold_gradient,
}
