"""The records of keys and tenants, as stored in `register.json`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from .caller import Scope

TENANT_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,126}$"
TenantName = Annotated[str, Field(pattern=TENANT_PATTERN)]
Weight = Annotated[float, Field(gt=0, le=1000)]
InFlight = Annotated[int, Field(ge=0)]
CpuS = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Record(BaseModel):
    """Its values are frozen, and it takes no unknown field."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class KeyRecord(Record):
    """A key without its secret: `hash` is HMAC-SHA-256 of it, `last4` the end of its text, `name` its purpose."""

    id: str
    name: str
    hash: str
    last4: str
    tenant: TenantName
    scopes: frozenset[Scope]
    created: AwareDatetime
    expires: AwareDatetime | None = None
    revoked: AwareDatetime | None = None

    @property
    def holder(self) -> str:
        """The name of a caller with this key."""
        return f"key:{self.id}"

    def state(self, now: datetime) -> Literal["good", "expired", "revoked"]:
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= now else "good"


class TenantRecord(Record):
    """The limits of a tenant: None is the default of the settings, 0 no limit; docs/identity.md describes them."""

    weight: Weight = 1.0
    shared: bool = False
    in_flight: InFlight | None = None
    cpu_s: CpuS | None = None


class Register(Record):
    """Every key that was ever made, and the tenants that differ from the defaults."""

    version: Literal[1] = 1
    keys: tuple[KeyRecord, ...] = ()
    tenants: dict[TenantName, TenantRecord] = Field(default_factory=dict[str, TenantRecord])
