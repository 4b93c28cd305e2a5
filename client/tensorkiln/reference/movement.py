"""Nodes that only move elements."""

from __future__ import annotations

import numpy as np

from ..nodes import Cat, Expand, Flip, Pad, Permute, Reshape, Shrink
from .precision import Array
from .scope import Evaluator, Scope


def evaluate_reshape(node: Reshape, scope: Scope) -> Array:
    return scope.read(node.in_var).reshape(scope.dims(node.new_shape))


def evaluate_permute(node: Permute, scope: Scope) -> Array:
    """`out.shape[i] == in.shape[axes_permutation[i]]`."""
    return scope.read(node.in_var).transpose(node.axes_permutation)


def evaluate_expand(node: Expand, scope: Scope) -> Array:
    return np.broadcast_to(scope.read(node.in_var), scope.dims(node.new_target_shape))


def evaluate_pad(node: Pad, scope: Scope) -> Array:
    """Zeros (false) around the tensor."""
    x = scope.read(node.in_var)
    widths = [scope.dims(pair) for pair in node.pad_width]
    padded = np.zeros([begin + extent + end for extent, (begin, end) in zip(x.shape, widths, strict=True)], x.dtype)
    inside = tuple(slice(begin, begin + extent) for extent, (begin, _) in zip(x.shape, widths, strict=True))
    padded[inside] = x
    return padded


def evaluate_shrink(node: Shrink, scope: Scope) -> Array:
    return scope.read(node.in_var)[tuple(slice(*scope.dims(pair)) for pair in node.limits)]


def evaluate_flip(node: Flip, scope: Scope) -> Array:
    return np.flip(scope.read(node.in_var), node.axes)


def evaluate_cat(node: Cat, scope: Scope) -> Array:
    return np.concatenate([scope.read(var) for var in node.in_vars], axis=node.axis)


EVALUATORS: dict[type, Evaluator] = {
    Reshape: evaluate_reshape,
    Permute: evaluate_permute,
    Expand: evaluate_expand,
    Pad: evaluate_pad,
    Shrink: evaluate_shrink,
    Flip: evaluate_flip,
    Cat: evaluate_cat,
}
