"""Identity nodes: hints, markers, copies between devices."""

from __future__ import annotations

import numpy as np

from ..nodes import Contiguous, ContiguousBackward, Copy, Detach, Fuse, Noop, Unroll
from .precision import Array
from .scope import Evaluator, Scope


def evaluate_identity(node: Contiguous | ContiguousBackward | Copy | Detach | Fuse, scope: Scope) -> Array:
    return scope.read(node.in_var)


def evaluate_unroll(node: Unroll, scope: Scope) -> Array:
    return scope.read(node.loop_var)


def evaluate_noop(node: Noop, scope: Scope) -> Array:
    """The input, or zeros in the shape of the out var."""
    if node.in_var is None:
        return np.zeros(scope.shape(node.out_var), node.dtype.numpy)
    return scope.read(node.in_var)


EVALUATORS: dict[type, Evaluator] = {
    Contiguous: evaluate_identity,
    ContiguousBackward: evaluate_identity,
    Copy: evaluate_identity,
    Detach: evaluate_identity,
    Fuse: evaluate_identity,
    Unroll: evaluate_unroll,
    Noop: evaluate_noop,
}
