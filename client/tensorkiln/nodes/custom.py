"""Operations outside the set, found by name in `tensorkiln.custom`."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ..dtypes import DType
from ..limits import I64_MAX, I64_MIN
from .base import Record
from .fields import Name, Shape, Var, Vars

_PYTHON_TYPES = {"int": int, "float": float, "string": str, "shape": tuple}


class CustomAttr(Record):
    """A named attribute; `kind` says what `value` is. A float is finite and written with a point or an exponent."""

    name: Name
    kind: Literal["int", "float", "string", "shape"]
    value: (
        Annotated[int, Field(strict=True, ge=I64_MIN, le=I64_MAX)]
        | Annotated[float, Field(strict=True, allow_inf_nan=False)]
        | Annotated[str, Field(strict=True)]
        | Shape
    )

    @model_validator(mode="after")
    def _value_is_of_its_kind(self) -> Self:
        if type(self.value) is not _PYTHON_TYPES[self.kind]:
            raise ValueError(f"the value of a {self.kind} attribute is {_PYTHON_TYPES[self.kind].__name__}")
        return self


class Custom(Record):
    """The registered operation `op_name` of the inputs."""

    node: Literal["custom"] = "custom"
    op_name: Name
    in_vars: Vars
    attributes: tuple[CustomAttr, ...]
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return self.in_vars
