"""Tensors over several devices."""

from __future__ import annotations

import numpy as np

from ..nodes import Multi
from .precision import Array
from .scope import Evaluator, Scope


def evaluate_multi(node: Multi, scope: Scope) -> Array:
    """Without an axis every device holds the same tensor; with one, the real shards are joined along it."""
    if node.axis is None:
        return scope.read(node.device_vars[0])
    shards = zip(node.device_vars, node.real_mask, strict=True)
    return np.concatenate([scope.read(var) for var, is_real in shards if is_real], axis=node.axis)


EVALUATORS: dict[type, Evaluator] = {Multi: evaluate_multi}
