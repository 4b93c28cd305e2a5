"""Identity nodes with hints, identifiers and no-ops; and the scalars of symbols."""

from __future__ import annotations

from ..dtypes import DType
from ..nodes import Bind, ContiguousBackward, DefineVar, Detach, Device, Fuse, Noop, Unique, Unroll
from ..types import TensorType
from .legality import INTEGERS, MARKERS
from .scope import Scope


def identity(node: Detach | ContiguousBackward | Fuse, scope: Scope) -> TensorType:
    source = scope.types[node.in_var]
    scope.require_dtype(node.dtype, source.dtype)
    return source


def unroll(node: Unroll, scope: Scope) -> TensorType:
    source = scope.types[node.loop_var]
    scope.require_dtype(node.dtype, source.dtype)
    if node.unroll_factor < 1:
        scope.fail(f"an unroll factor is at least 1, here {node.unroll_factor}", "unroll_factor")
    return source


def _require_fits(scope: Scope, dtype: DType, low: int, high: int, field: str) -> None:
    if dtype not in INTEGERS:
        scope.fail(f"a symbol is an integer, but the node says {dtype}", "dtype")
    if not dtype.min <= low <= high <= dtype.max:
        scope.fail(f"{low} to {high} is outside of {dtype}: {dtype.min} to {dtype.max}", field)


def define_var(node: DefineVar, scope: Scope) -> TensorType:
    _require_fits(scope, node.dtype, node.sym_var.min_val, node.sym_var.max_val, "sym_var")
    return scope.type(node.dtype, ())


def bind(node: Bind, scope: Scope) -> TensorType:
    _ = scope.types[node.sym_var]
    _require_fits(scope, node.dtype, node.value, node.value, "value")
    return scope.type(node.dtype, ())


def unique(node: Unique, scope: Scope) -> TensorType:
    if node.dtype not in MARKERS:
        scope.fail(f"unique is int32 or unit, but the node says {node.dtype}", "dtype")
    if node.dtype is DType.INT32 and not DType.INT32.min <= node.id <= DType.INT32.max:
        scope.fail(f"the id {node.id} is outside of int32", "id")
    return scope.type(node.dtype, ())


def device(node: Device, scope: Scope) -> TensorType:
    if node.dtype not in MARKERS:
        scope.fail(f"device is int32 or unit, but the node says {node.dtype}", "dtype")
    return scope.type(node.dtype, ())


def noop(node: Noop, scope: Scope) -> TensorType:
    if node.in_var is None:
        return scope.type(node.dtype, scope.stated_shape(node.out_var) or ())
    source = scope.types[node.in_var]
    scope.require_dtype(node.dtype, source.dtype)
    return source


RULES = {
    Detach: identity,
    ContiguousBackward: identity,
    Fuse: identity,
    Unroll: unroll,
    DefineVar: define_var,
    Bind: bind,
    Unique: unique,
    Device: device,
    Noop: noop,
}
