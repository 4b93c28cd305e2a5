"""Index, gep, vectorize, gather, scatter, threefry."""

from __future__ import annotations

from ..dtypes import DType
from ..nodes import Gather, Gep, Index, Scatter, ScatterKind, Threefry, Vectorize
from ..types import TensorType
from .elementwise import mixed_shape
from .legality import CONDITIONS, INTEGERS, VALUES, advice
from .movement import operand
from .scope import Scope, Shape


def _indices(scope: Scope, var: int, field: str) -> TensorType:
    found = scope.types[var]
    if found.dtype not in INTEGERS:
        scope.fail(f"an index is an integer, here {found.dtype}", field)
    return found


def index(node: Index, scope: Scope) -> TensorType:
    source, indices = operand(scope, node.in_var), _indices(scope, node.idx_var, "idx_var")
    scope.require_dtype(node.dtype, source.dtype)
    if node.valid_var is not None:
        gate = scope.types[node.valid_var]
        if gate.dtype not in CONDITIONS:
            scope.fail(f"a gate is bool or uint8, here {gate.dtype}", "valid_var")
        scope.require_same_shape(gate.shape, indices.shape, "a gate has the shape of the index", "valid_var")
    return scope.type(source.dtype, indices.shape)


def gep(node: Gep, scope: Scope) -> TensorType:
    source = operand(scope, node.in_var)
    scope.require_dtype(node.dtype, source.dtype)
    if source.rank == 0 or not node.indices:
        scope.fail("gep takes one or more lanes of a value that has a last axis", "indices")
    *outer, lanes = source.shape
    for lane in node.indices:
        if lane < 0:
            scope.fail(f"lane {lane} is negative", "indices")
        scope.require_ge(lanes, lane + 1, f"lane {lane} is outside of the last axis", "indices")
    return scope.type(source.dtype, tuple(outer) if len(node.indices) == 1 else (*outer, len(node.indices)))


def vectorize(node: Vectorize, scope: Scope) -> TensorType:
    if len(node.in_vars) < 2:
        scope.fail(f"vectorize takes two or more inputs, here {len(node.in_vars)}", "in_vars")
    first, *rest = (operand(scope, var, "in_vars") for var in node.in_vars)
    scope.require_dtype(node.dtype, first.dtype)
    for part in rest:
        if part.dtype is not first.dtype:
            scope.fail(f"the inputs have different dtypes: {first.dtype} and {part.dtype}", "in_vars")
        scope.require_same_shape(first.shape, part.shape, "the inputs have different shapes", "in_vars")
    return scope.type(first.dtype, (*first.shape, len(node.in_vars)))


def _require_covered(scope: Scope, whole: Shape, indices: Shape, axis: int, field: str) -> None:
    """On all axes but `axis`, the indices must not be larger than the indexed value."""
    if len(whole) != len(indices):
        scope.fail(f"the indices have rank {len(indices)}, the indexed value {len(whole)}", field)
    scope.require_axis(axis, len(indices), "axis")
    for other, (size, indexed) in enumerate(zip(whole, indices, strict=True)):
        if other != axis:
            scope.require_ge(size, indexed, f"the indices reach beyond axis {other} of the indexed value", field)


def gather(node: Gather, scope: Scope) -> TensorType:
    source, indices = operand(scope, node.src_var, "src_var"), _indices(scope, node.indices_var, "indices_var")
    scope.require_dtype(node.dtype, source.dtype)
    _require_covered(scope, source.shape, indices.shape, node.axis, "indices_var")
    return scope.type(source.dtype, indices.shape)


def scatter(node: Scatter, scope: Scope) -> TensorType:
    updates = operand(scope, node.updates_var, "updates_var")
    indices = _indices(scope, node.indices_var, "indices_var")
    scope.require_dtype(node.dtype, updates.dtype)
    if node.reduction is not ScatterKind.NONE and updates.dtype not in VALUES:
        message = f"scatter {node.reduction} does not take {updates.dtype}{advice(updates.dtype)}"
        scope.fail(message, "reduction", "updates_var")
    scope.require_same_shape(indices.shape, updates.shape, "indices and updates have one shape", "updates_var")
    result = scope.type(updates.dtype, node.shape)
    _require_covered(scope, node.shape, indices.shape, node.axis, "shape")
    if node.init_var is not None:
        init = operand(scope, node.init_var, "init_var")
        if init.dtype is not updates.dtype:
            message = f"the initial values and the updates have different dtypes: {init.dtype} and {updates.dtype}"
            scope.fail(f"{message} (cast one of them)", "init_var", "updates_var")
        scope.require_same_shape(init.shape, node.shape, "the initial values have the shape of the result", "init_var")
    return result


def threefry(node: Threefry, scope: Scope) -> TensorType:
    counter, key = scope.types[node.ctr_var], scope.types[node.key_var]
    if counter.dtype is not key.dtype or counter.dtype not in (DType.UINT64, DType.INT32):
        scope.fail(
            f"threefry takes uint64 words or int32 pairs, here {counter.dtype} and {key.dtype}", "ctr_var", "key_var"
        )
    scope.require_dtype(node.dtype, counter.dtype)
    if counter.dtype is DType.UINT64:
        return scope.type(DType.UINT64, mixed_shape(scope, counter.shape, key.shape, "ctr_var", "key_var"))
    scope.require_same_shape(counter.shape, key.shape, "the key has the shape of the counter", "key_var")
    if not counter.shape:
        scope.fail("the last axis of int32 pairs has size 2", "ctr_var")
    scope.require_eq(counter.shape[-1], 2, "the last axis of int32 pairs has size 2", "ctr_var")
    return counter


RULES = {Index: index, Gep: gep, Vectorize: vectorize, Gather: gather, Scatter: scatter, Threefry: threefry}
