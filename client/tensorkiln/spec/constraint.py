"""A constraint of a call as a field of a record."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from ..expr import from_derived_wire, to_wire
from ..infer import Constraint

_FIELDS = frozenset({"kind", "left", "right", "pointer", "message"})


def _parse(value: Any) -> Constraint:
    if isinstance(value, Constraint):
        return value
    if not isinstance(value, dict) or value.keys() != _FIELDS or value["kind"] not in ("eq", "ge"):
        raise ValueError(f"a constraint is an object of {', '.join(sorted(_FIELDS))}, its kind eq or ge")
    return Constraint(
        kind=value["kind"],
        left=from_derived_wire(value["left"]),
        right=from_derived_wire(value["right"]),
        pointer=str(value["pointer"]),
        message=str(value["message"]),
    )


def _dump(constraint: Constraint) -> dict[str, Any]:
    return {
        "kind": constraint.kind,
        "left": to_wire(constraint.left),
        "right": to_wire(constraint.right),
        "pointer": constraint.pointer,
        "message": constraint.message,
    }


_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["eq", "ge"]},
        "left": {"description": "a dimension"},
        "right": {"description": "a dimension"},
        "pointer": {"type": "string"},
        "message": {"type": "string"},
    },
    "required": sorted(_FIELDS),
    "additionalProperties": False,
}


class _Wire:
    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _parse, serialization=core_schema.plain_serializer_function_ser_schema(_dump)
        )

    @staticmethod
    def __get_pydantic_json_schema__(schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return _SCHEMA


WireConstraint = Annotated[Constraint, _Wire]
"""A pydantic field that holds a `Constraint`."""
