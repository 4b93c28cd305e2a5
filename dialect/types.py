"""The types of kiln values: `tensor<…xT>`, and their conversion to and from `TensorType`.

Signed integers are signless (`i32`), unsigned ones carry their sign (`ui32`), bool is `i1` and unit is `i0`. A symbolic
dim is `?`, and the encoding then lists the text of every dim: `tensor<?x4xf32, ["2*n", "4"]>`. A static type has no
encoding. Devices are no part of a type.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, ExprError, parse_text, to_text
from tensorkiln.types import TensorType

from .mlir import ir
from .remembered import Remembered

_ELEMENTS = {
    DType.FLOAT16: "f16",
    DType.BFLOAT16: "bf16",
    DType.FLOAT32: "f32",
    DType.FLOAT64: "f64",
    **{DType(f"int{bits}"): f"i{bits}" for bits in (8, 16, 32, 64)},
    **{DType(f"uint{bits}"): f"ui{bits}" for bits in (8, 16, 32, 64)},
    DType.BOOL: "i1",
    DType.UNIT: "i0",
    DType.FLOAT8_E4M3FN: "f8E4M3FN",
    DType.FLOAT8_E4M3FNUZ: "f8E4M3FNUZ",
    DType.FLOAT8_E5M2: "f8E5M2",
    DType.FLOAT8_E5M2FNUZ: "f8E5M2FNUZ",
    DType.FLOAT4_E2M1FN: "f4E2M1FN",
    **{DType(f"int{bits}"): f"i{bits}" for bits in (4, 2)},
    **{DType(f"uint{bits}"): f"ui{bits}" for bits in (4, 2)},
}
_DTYPES = {element: dtype for dtype, element in _ELEMENTS.items()}
_FLOATS = {
    DType.FLOAT16: ir.F16Type,
    DType.BFLOAT16: ir.BF16Type,
    DType.FLOAT32: ir.F32Type,
    DType.FLOAT64: ir.F64Type,
    DType.FLOAT8_E4M3FN: ir.Float8E4M3FNType,
    DType.FLOAT8_E4M3FNUZ: ir.Float8E4M3FNUZType,
    DType.FLOAT8_E5M2: ir.Float8E5M2Type,
    DType.FLOAT8_E5M2FNUZ: ir.Float8E5M2FNUZType,
    DType.FLOAT4_E2M1FN: ir.Float4E2M1FNType,
}
_KNOWN = Remembered[int, TensorType]()
"""Tensor types by the hash of the MLIR type."""


class NotATensorError(TypeError):
    """A type that represents no value of the dialect; the message gives the reason."""


def element_type(dtype: DType) -> ir.Type:
    """The element type of `dtype`, in the current context."""
    if dtype in _FLOATS:
        return _FLOATS[dtype].get()
    if dtype.wide.is_unsigned:
        return ir.IntegerType.get_unsigned(dtype.bits)
    return ir.IntegerType.get_signless(dtype.bits)


def dtype_of(element: ir.Type) -> DType:
    """The dtype of an element type; raises NotATensorError if there is none."""
    text = str(element)
    if text not in _DTYPES:
        raise NotATensorError(f"a kiln tensor cannot have elements of type {text}; known are {', '.join(_DTYPES)}")
    return _DTYPES[text]


def tensor_type(value: TensorType) -> ir.RankedTensorType:
    """The MLIR type of `value`, in the current context."""
    element = element_type(value.dtype)
    if all(isinstance(dim, int) for dim in value.shape):
        return ir.RankedTensorType.get(value.shape, element, loc=ir.Location.unknown())
    dynamic = ir.ShapedType.get_dynamic_size()
    extents = [dim if isinstance(dim, int) else dynamic for dim in value.shape]
    encoding = ir.ArrayAttr.get([ir.StringAttr.get(to_text(dim)) for dim in value.shape])
    return ir.RankedTensorType.get(extents, element, encoding, loc=ir.Location.unknown())


def type_of(value: ir.Value | ir.Type) -> TensorType:
    """The tensor type of an MLIR value or of its type; `device` is None.

    Raises NotATensorError for a type that is no tensor of the kiln dialect: another kind of type, another element type,
    or a dynamic dim without its text.
    """
    mlir_type: ir.Type = value.type if isinstance(value, ir.Value) else value
    known = _KNOWN.within(mlir_type.context)
    key = hash(mlir_type)
    found = known.get(key)
    if found is None:
        found = known[key] = _parse(mlir_type)
    return found


def _parse(mlir_type: ir.Type) -> TensorType:
    if not isinstance(mlir_type, ir.RankedTensorType):
        raise NotATensorError(f"{mlir_type} is not a ranked tensor")
    dtype = dtype_of(mlir_type.element_type)
    if mlir_type.encoding is None:
        if not mlir_type.has_static_shape:
            raise NotATensorError(f"{mlir_type} has a dynamic dim and no encoding that says which")
        return TensorType(dtype, tuple(mlir_type.shape))
    return TensorType(dtype, tuple(_encoded_dims(mlir_type)))


def _encoded_dims(mlir_type: ir.RankedTensorType) -> Iterator[Dim]:
    encoding: Any = mlir_type.encoding
    if (
        not isinstance(encoding, ir.ArrayAttr)
        or len(encoding) != mlir_type.rank
        or not all(isinstance(entry, ir.StringAttr) for entry in encoding)
    ):
        raise NotATensorError(f"the encoding of {mlir_type} is not one text per dim")
    for axis, entry in enumerate(encoding):
        try:
            dim = parse_text(entry.value)
        except ExprError as error:
            raise NotATensorError(f"the encoding of {mlir_type}: {error}") from error
        if dim != mlir_type.shape[axis] if isinstance(dim, int) else not mlir_type.is_dynamic_dim(axis):
            raise NotATensorError(f"axis {axis} of {mlir_type} is another size than its encoding, which says {dim}")
        yield dim
