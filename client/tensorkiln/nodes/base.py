"""What every record of the wire format has in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """An immutable object of the wire format; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def replaced(self, changes: Mapping[str, Any]) -> Self:
        """`model_copy(update=changes)` in a fifth of the time, of a record without private attributes.

        The new values are not validated.
        """
        stated = self.__pydantic_fields_set__
        copied = object.__new__(type(self))
        _set(copied, "__dict__", {**self.__dict__, **changes})
        _set(copied, "__pydantic_fields_set__", stated if changes.keys() <= stated else stated | changes.keys())
        _set(copied, "__pydantic_extra__", None)
        _set(copied, "__pydantic_private__", None)
        return copied


# A frozen record refuses its own __setattr__.
_set = object.__setattr__
