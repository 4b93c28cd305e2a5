"""Symbols as values."""

from __future__ import annotations

import numpy as np

from ..nodes import Bind, DefineVar
from .precision import Array
from .scope import Evaluator, Scope


def evaluate_define_var(node: DefineVar, scope: Scope) -> Array:
    """The symbol's value at this call, a scalar."""
    return np.array(scope.symbols[node.sym_var.name], node.dtype.numpy)


def evaluate_bind(node: Bind, scope: Scope) -> Array:
    return np.array(node.value, node.dtype.numpy)


EVALUATORS: dict[type, Evaluator] = {DefineVar: evaluate_define_var, Bind: evaluate_bind}
