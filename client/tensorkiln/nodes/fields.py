"""Field types of the wire format: strict integers, names, devices, dimensions, and literal values.

All except symbolic dimensions are checked by pydantic's compiled core: plain integers run no Python code here.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from ..expr import Dim, Expr, ExprError, ExprLimitError, from_wire, to_wire
from ..limits import DEVICE_PATTERN, I64_MAX, I64_MIN, MAX_RANK, NAME_PATTERN

Var = Annotated[int, Field(strict=True, ge=0, le=I64_MAX)]
Integer = Annotated[int, Field(strict=True, ge=I64_MIN, le=I64_MAX)]
Natural = Annotated[int, Field(strict=True, ge=0, le=I64_MAX)]
Flag = Annotated[bool, Field(strict=True)]
Name = Annotated[str, Field(strict=True, pattern=NAME_PATTERN)]
DeviceName = Annotated[str, Field(strict=True, pattern=DEVICE_PATTERN)]


def parse_dim(wire: object) -> Dim:
    """Parse a symbolic dimension. Raises pydantic's errors, which the graph converts to its own."""
    if isinstance(wire, int):
        raise PydanticCustomError("dimension", "a dimension is an integer of 64 bits")
    try:
        return from_wire(wire)
    except ExprLimitError as error:
        context = {"limit": error.limit, "maximum": error.maximum, "actual": error.actual}
        raise PydanticCustomError("limit", "the expression is too large", context) from error
    except ExprError as error:
        raise PydanticCustomError("dimension", "{reason}", {"reason": str(error)}) from error


class _Dimension:
    """Pydantic's view of a `Dim`: an integer first, else a symbol's name or an expression object."""

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.union_schema(
            [
                core_schema.int_schema(strict=True, ge=I64_MIN, le=I64_MAX),
                core_schema.no_info_plain_validator_function(
                    parse_dim, serialization=core_schema.plain_serializer_function_ser_schema(to_wire)
                ),
            ],
            mode="left_to_right",
        )

    @staticmethod
    def __get_pydantic_json_schema__(schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return dict(DIMENSION_PLACEHOLDER)


DIMENSION_PLACEHOLDER: JsonSchemaValue = {"title": "Dimension"}
"""Placeholder of a dimension, which becomes a reference to the definition below once the schema is complete."""

DIMENSION_JSON_SCHEMA: JsonSchemaValue = {
    "title": "Dimension",
    "description": "An integer, a symbol's name, or an expression over declared symbols.",
    "anyOf": [
        {"type": "integer", "minimum": I64_MIN, "maximum": I64_MAX},
        {"type": "string", "pattern": NAME_PATTERN},
        {
            "type": "object",
            "properties": {
                "op": {"enum": ["add", "sub", "mul", "idiv", "mod", "floordiv", "floormod", "max", "min", "neg"]},
                "args": {"type": "array", "items": {"$ref": "#/$defs/Dimension"}, "minItems": 1},
            },
            "required": ["op", "args"],
            "additionalProperties": False,
        },
    ],
}

Dimension = Annotated[int | Expr, _Dimension]
Shape = Annotated[tuple[Dimension, ...], Field(max_length=MAX_RANK)]
DimensionPair = tuple[Dimension, Dimension]
DimensionPairs = Annotated[tuple[DimensionPair, ...], Field(max_length=MAX_RANK)]
Axes = Annotated[tuple[Integer, ...], Field(max_length=MAX_RANK)]
Integers = tuple[Integer, ...]
Vars = tuple[Var, ...]

Scalar = bool | int | float | str | None
"""A literal in JSON: a non-finite float is one of the strings inf, -inf and nan; unit is null."""

_SCALAR_JSON_SCHEMA: JsonSchemaValue = {
    "anyOf": [
        {"type": "boolean"},
        {"type": "integer", "minimum": I64_MIN, "maximum": (1 << 64) - 1},
        {"type": "number"},
        {"enum": ["inf", "-inf", "nan"]},
        {"type": "null"},
    ]
}


class _Literal:
    """Pydantic's view of a literal: accepted unchanged, and checked by inference, which knows the dtype."""

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.any_schema()

    @staticmethod
    def __get_pydantic_json_schema__(schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return _SCALAR_JSON_SCHEMA


ScalarLiteral = Annotated[Scalar, _Literal]
