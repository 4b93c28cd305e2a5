"""Normalisations, with the statistics for their gradients."""

from __future__ import annotations

from ... import build
from ...build import Tensor
from ...build.conversion import widened
from ...dtypes import DType
from ...expr import Dim, product, sub
from .call import Call, Operator


def _standardised(x: Tensor, axes: list[int], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """`(x - mean) / sqrt(var + eps)`, the mean, and the reciprocal standard deviation."""
    mean = x.mean(axes, True)
    centred = x - mean
    scale = ((centred * centred).mean(axes, True) + eps).rsqrt()
    return centred * scale, mean, scale


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    scaled = x if weight is None else x * weight.cast(x.dtype)
    return scaled if bias is None else scaled + bias.cast(x.dtype)


def _layer_norm(call: Call) -> list[Tensor]:
    x = call.tensor("input")
    axes = list(range(x.rank - len(call.dims("normalized_shape")), x.rank))
    normal, mean, scale = _standardised(widened(x), axes, call.number("eps", 1e-5))
    result = _affine(normal, call.optional("weight"), call.optional("bias")).cast(x.dtype)
    return [result, mean.cast(call.dtype_of(1, x.dtype)), scale.cast(call.dtype_of(2, x.dtype))]


def _rms_norm(call: Call) -> Tensor:
    x = call.tensor("input")
    axes = list(range(x.rank - len(call.dims("normalized_shape")), x.rank))
    eps = call.number("eps") if call.has("eps") else _epsilon(x)
    wide = widened(x)
    normal = wide * ((wide * wide).mean(axes, True) + eps).rsqrt()
    return _affine(normal, call.optional("weight"), None).cast(call.dtype)


def _epsilon(x: Tensor) -> float:
    """torch's default: the machine epsilon of the type in which it computes."""
    return 2.0**-52 if x.dtype is DType.FLOAT64 else 2.0**-23


def _group_norm(call: Call) -> list[Tensor]:
    """Group normalisation, over groups of adjacent channels."""
    x, groups = call.tensor("input"), call.integer("group" if call.has("group") else "num_groups")
    batch, channels, *spatial = x.shape
    if not isinstance(channels, int) or channels % groups:
        call.fail(f"{channels} channels do not make {groups} groups")
    rows = widened(x).reshape([batch, groups, product([channels // groups, *spatial])])
    normal, mean, scale = _standardised(rows, [2], call.number("eps", 1e-5))
    aligned = (channels, *(1,) * len(spatial))
    weight, bias = (
        each.reshape(aligned) if each is not None else None for each in (call.optional("weight"), call.optional("bias"))
    )
    result = _affine(normal.reshape(x.shape), weight, bias).cast(x.dtype)
    statistics = [each.reshape([batch, groups]) for each in (mean, scale)]
    return [result, *(each.cast(call.dtype_of(place, x.dtype)) for place, each in enumerate(statistics, start=1))]


def _by_channels(x: Tensor, mean: Tensor, scale: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    aligned = (x.shape[1], *(1,) * (x.rank - 2))
    factor = scale if weight is None else scale * weight.cast(scale.dtype)
    normal = (widened(x) - mean.reshape(aligned)) * factor.reshape(aligned)
    return normal if bias is None else normal + bias.cast(normal.dtype).reshape(aligned)


def _inference_batch_norm(call: Call) -> list[Tensor]:
    """Batch normalisation by running statistics; saved statistics are empty, as in torch."""
    x = call.tensor("input")
    mean = widened(call.tensor("running_mean"))
    scale = (widened(call.tensor("running_var")) + call.number("eps")).rsqrt()
    result = _by_channels(x, mean, scale, call.optional("weight"), call.optional("bias")).cast(x.dtype)
    empty = [build.zeros(x.builder, (0,), call.dtype_of(place, x.dtype)) for place in (1, 2)]
    return [result, *empty]


def _measured(x: Tensor) -> tuple[Tensor, Tensor, list[int]]:
    axes = [axis for axis in range(x.rank) if axis != 1]
    mean = x.mean(axes, True)
    centred = x - mean
    return mean.reshape([x.shape[1]]), (centred * centred).mean(axes), axes


def _batch_norm(call: Call) -> list[Tensor]:
    """Batch normalisation: in training by the batch's statistics, which update the running ones; else by those."""
    x = call.tensor("input")
    if not call.flag("training", True):
        return _inference_batch_norm(call) + _unchanged(call)
    eps = call.number("eps")
    mean, variance, axes = _measured(widened(x))
    scale = (variance + eps).rsqrt()
    result = _by_channels(x, mean, scale, call.optional("weight"), call.optional("bias")).cast(x.dtype)
    saved = [mean.cast(call.dtype_of(1, mean.dtype)), scale.cast(call.dtype_of(2, mean.dtype))]
    if not call.has("running_mean"):
        return [result, *saved]
    count = product(x.shape[axis] for axis in axes)
    return [result, *saved, *_moved(call, mean, variance, count)]


def _unchanged(call: Call) -> list[Tensor]:
    return [call.tensor("running_mean"), call.tensor("running_var")]


def _moved(call: Call, mean: Tensor, variance: Tensor, count: Dim) -> list[Tensor]:
    """The updated running statistics. The running variance is the sample variance (divisor count - 1)."""
    momentum = call.number("momentum")
    sample = build.dim_value(mean.builder, count, mean.dtype) / build.dim_value(mean.builder, sub(count, 1), mean.dtype)
    found: list[Tensor] = []
    for name, own in (("running_mean", mean), ("running_var", variance * sample)):
        old = call.tensor(name)
        wide = widened(old)
        found.append((wide * (1.0 - momentum) + own.cast(wide.dtype) * momentum).cast(old.dtype))
    return found


def _batch_norm_result(call: Call) -> Tensor:
    """`batch_norm` of an export that is not decomposed; only for inference."""
    if call.flag("training"):
        call.fail("batch normalisation in training changes its buffers; export after run_decompositions()")
    return _inference_batch_norm(call)[0]


def _layer_norm_result(call: Call) -> Tensor:
    return _layer_norm(call)[0]


def _group_norm_result(call: Call) -> Tensor:
    return _group_norm(call)[0]


def _softmax(call: Call) -> Tensor:
    x = call.tensor()
    wide = x.cast(call.dtype)
    return build.softmax(wide, call.axis(x)) if x.shape else build.where(build.is_nan(wide), wide, 1.0)


def _safe_softmax(call: Call) -> Tensor:
    """Softmax with zeros for fully masked rows."""
    x = call.tensor().cast(call.dtype)
    masked = build.equal(x, float("-inf")).all([call.axis(x)], True)
    return build.where(masked, 0.0, build.softmax(x, call.axis(x)))


def _log_softmax(call: Call) -> Tensor:
    x = call.tensor()
    wide = x.cast(call.dtype)
    return build.log_softmax(wide, call.axis(x)) if x.shape else wide - wide


OPERATORS: dict[str, Operator] = {
    "aten._log_softmax.default": _log_softmax,
    "aten._native_batch_norm_legit.no_stats": _batch_norm,
    "aten._native_batch_norm_legit_functional.default": _batch_norm,
    "aten._native_batch_norm_legit_no_training.default": _inference_batch_norm,
    "aten._safe_softmax.default": _safe_softmax,
    "aten._softmax.default": _softmax,
    "aten.batch_norm.default": _batch_norm_result,
    "aten.group_norm.default": _group_norm_result,
    "aten.layer_norm.default": _layer_norm_result,
    "aten.log_softmax.int": _log_softmax,
    "aten.native_group_norm.default": _group_norm,
    "aten.native_layer_norm.default": _layer_norm,
    "aten.rms_norm.default": _rms_norm,
    "aten.softmax.int": _softmax,
}
