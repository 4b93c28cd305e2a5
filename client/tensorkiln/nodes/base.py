"""What every record of the wire format has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """An immutable object of the wire format; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")
