"""The metadata that a graph states about its vars."""

from __future__ import annotations

from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from ..dtypes import DType
from ..limits import I64_MAX
from .base import Record
from .fields import DeviceName, Shape


class VarMetadata(Record):
    """What the writer of a graph states about a var; inference must agree."""

    dtype: DType
    shape: Shape
    device: DeviceName | None = None


class VarKey:
    """A var as a key of a JSON object: its decimal digits, without sign or leading zeros."""

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        number = core_schema.int_schema(ge=0, le=I64_MAX)
        digits = core_schema.chain_schema([core_schema.str_schema(strict=True, pattern=r"^(0|[1-9][0-9]*)$"), number])
        return core_schema.json_or_python_schema(
            json_schema=digits,
            python_schema=core_schema.union_schema(
                [core_schema.int_schema(strict=True, ge=0, le=I64_MAX), digits], mode="left_to_right"
            ),
        )
