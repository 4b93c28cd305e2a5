"""A dim as a pydantic field; plain integers, the usual case, are handled by pydantic's compiled core."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from .expr import INT64_MAX, INT64_MIN, Dim, Expr, WireDim, from_derived_wire, to_wire

_MOST_KNOWN: Final = 4096
_known: dict[str, Expr | int] = {}


def _parse(value: object) -> Dim:
    """`from_derived_wire` with a cache, because a program's records repeat the same few expressions."""
    if isinstance(value, Expr):
        return value
    spelling = repr(value)
    dim = _known.get(spelling)
    if dim is None:
        dim = from_derived_wire(value)
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[spelling] = dim
    return dim


class _Size:
    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.union_schema(
            [
                core_schema.int_schema(strict=True, ge=INT64_MIN, le=INT64_MAX),
                core_schema.no_info_plain_validator_function(_parse),
            ],
            mode="left_to_right",
            serialization=core_schema.plain_serializer_function_ser_schema(to_wire),
        )

    @staticmethod
    def __get_pydantic_json_schema__(schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return TypeAdapter(WireDim).json_schema()


WireSize = Annotated[int | Expr, _Size]
"""A pydantic field that reads and writes a size in elements or bytes, a stride, or an extent."""
