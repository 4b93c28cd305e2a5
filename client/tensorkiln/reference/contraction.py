"""Products of tensors summed over axes: contract, and the matrix tile of wmma."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dtypes import DType
from ..nodes import BinopKind, Contract, Wmma
from .binop import apply_binop
from .precision import Array, accumulator, rounded
from .scope import Evaluator, Scope


def evaluate_contract(node: Contract, scope: Scope) -> Array:
    """`tensordot` of two tensors: the free axes of the first, then those of the second."""
    a, b = (scope.read(var) for var in node.in_vars)
    dtype = scope.dtype(node.in_vars[0])
    return rounded(_summed_product(a, b, node.contraction_axes, dtype), dtype)


def evaluate_wmma(node: Wmma, scope: Scope) -> Array:
    """`a (m, k) @ b (k, n) + c (m, n)` in the dtype of c, which the products are computed in at least."""
    dtype = scope.dtype(node.c_var)
    a, b, c = (scope.read(var).astype(accumulator(dtype)) for var in (node.a_var, node.b_var, node.c_var))
    product = _summed_product(a, b, ((1, 0),), dtype)
    if not dtype.is_float:
        return apply_binop(BinopKind.ADD, product, c, dtype)
    return rounded(product + c, dtype)


def _summed_product(a: Array, b: Array, axes: Sequence[tuple[int, int]], dtype: DType) -> Array:
    """In the accumulator's type, unrounded; integers wrap, and of bool it is whether any pair is true."""
    wide = accumulator(dtype)
    pairs = ([i for i, _ in axes], [j for _, j in axes])
    return np.asarray(np.tensordot(a.astype(wide), b.astype(wide), axes=pairs))


EVALUATORS: dict[type, Evaluator] = {Contract: evaluate_contract, Wmma: evaluate_wmma}
