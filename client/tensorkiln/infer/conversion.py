"""Cast and bitcast."""

from __future__ import annotations

from ..dtypes import DType
from ..expr import floordiv, floormod, mul
from ..nodes import Bitcast, Cast
from ..types import TensorType
from .legality import STORED
from .movement import operand
from .scope import Scope


def _require_target(node: Cast | Bitcast, scope: Scope) -> None:
    if node.target_dtype not in STORED:
        scope.fail(f"cannot convert to {node.target_dtype}", "target_dtype")
    if node.dtype is not node.target_dtype:
        scope.fail(f"dtype is {node.dtype}, target_dtype {node.target_dtype}: they are equal", "dtype", "target_dtype")


def require_whole_bytes(scope: Scope, before: DType, after: DType, *fields: str) -> None:
    """Refuses to read bytes as another dtype where an element of either is only a part of one byte."""
    for dtype in (before, after):
        if dtype.is_narrow and dtype.bits < 8 and before is not after:
            scope.fail(
                f"the bytes of {before} cannot be read as {after}: {dtype} has {dtype.bits} bits (cast)", *fields
            )


def cast(node: Cast, scope: Scope) -> TensorType:
    _require_target(node, scope)
    return scope.type(node.target_dtype, operand(scope, node.in_var).shape)


def bitcast(node: Bitcast, scope: Scope) -> TensorType:
    _require_target(node, scope)
    source = operand(scope, node.in_var)
    before, after = source.dtype.itemsize, node.target_dtype.itemsize
    if before == after:
        return scope.type(node.target_dtype, source.shape)
    if not source.shape:
        scope.fail(
            f"a scalar of {before} bytes cannot become elements of {after} bytes: reshape to one axis first", "in_var"
        )
    require_whole_bytes(scope, source.dtype, node.target_dtype, "in_var", "target_dtype")
    last_bytes = mul(source.shape[-1], before)
    message = f"the bytes of the last axis are a multiple of the {after} of {node.target_dtype}"
    scope.require_eq(floormod(last_bytes, after), 0, message, "in_var")
    return scope.type(node.target_dtype, (*source.shape[:-1], floordiv(last_bytes, after)))


RULES = {Cast: cast, Bitcast: bitcast}
