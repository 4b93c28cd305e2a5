"""The base of all records of the wire format."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

R = TypeVar("R", bound="Record")


class Record(BaseModel):
    """An immutable object of the wire format; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


# A frozen record refuses its own __setattr__, and object.__setattr__ is slower, because it looks up the attribute.
_set_fields, _set_stated, _set_extra, _set_private = (
    BaseModel.__dict__[name].__set__
    for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


def record_of(
    model: type[R], fields: dict[str, Any], stated: set[str] | None = None, private: dict[str, Any] | None = None
) -> R:
    """Make a record from all of its fields, in order, and all of its private attributes, without validation.

    `stated` names the fields that were set explicitly, None for all. Defaults are not filled in, and hooks do not run.
    """
    made = _new(model)
    _set_fields(made, fields)
    _set_stated(made, set(fields) if stated is None else stated)
    _set_extra(made, None)
    _set_private(made, private)
    return made


_new = object.__new__
