"""What every record of the wire format has in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict

R = TypeVar("R", bound="Record")


class Record(BaseModel):
    """An immutable object of the wire format; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def replaced(self, changes: Mapping[str, Any]) -> Self:
        """`model_copy(update=changes)` in a fifth of the time, of a record without private attributes.

        The new values are not validated.
        """
        stated = self.__pydantic_fields_set__
        changed = stated if changes.keys() <= stated else stated | changes.keys()
        return record_of(type(self), {**self.__dict__, **changes}, changed)

    @classmethod
    def of_valid(cls, fields: dict[str, Any], private: dict[str, Any]) -> Self:
        """A record of these fields by their names, all of them valid, and of these private attributes, all there are.

        Nothing is validated, filled in or called.
        """
        return record_of(cls, fields, set(fields), private)


# A frozen record refuses its own __setattr__, and that of object looks the attribute up first.
_set_fields, _set_stated, _set_extra, _set_private = (
    BaseModel.__dict__[name].__set__
    for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


def record_of(model: type[R], fields: dict[str, Any], stated: set[str], private: dict[str, Any] | None = None) -> R:
    """A record of all of its fields, in their order; `stated` names those that were given. Nothing is validated."""
    made = _new(model)
    _set_fields(made, fields)
    _set_stated(made, stated)
    _set_extra(made, None)
    _set_private(made, private)
    return made


_new = object.__new__
