"""What every record of the wire format has in common."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

R = TypeVar("R", bound="Record")


class Record(BaseModel):
    """An immutable object of the wire format; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


# A frozen record refuses its own __setattr__, and that of object looks the attribute up first.
_set_fields, _set_stated, _set_extra, _set_private = (
    BaseModel.__dict__[name].__set__
    for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


def record_of(
    model: type[R], fields: dict[str, Any], stated: set[str] | None = None, private: dict[str, Any] | None = None
) -> R:
    """A record of all of its fields, in their order, and of all of its private attributes.

    `stated` names the fields that were given, None for all. Nothing is validated, filled in or called.
    """
    made = _new(model)
    _set_fields(made, fields)
    _set_stated(made, set(fields) if stated is None else stated)
    _set_extra(made, None)
    _set_private(made, private)
    return made


_new = object.__new__
