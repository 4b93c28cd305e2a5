"""The caller of the request, or of the job, that runs in this context; and the scopes that a credential may have."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from tensorkiln.errors import ForbiddenError


class Scope(StrEnum):
    """What a credential is good for; docs/identity.md describes them. `ADMIN` includes none of the others."""

    COMPILE = "compile"
    CACHE_READ = "cache:read"
    CACHE_WRITE = "cache:write"
    ADMIN = "admin"


EVERYTHING: Final = frozenset(Scope)
READ_ONLY: Final = frozenset({Scope.CACHE_READ})


def forbidden(what: str, needed: Collection[Scope], joined: str = " and ") -> ForbiddenError:
    """The error of a caller who lacks the scopes `needed` for `what`: all of them, or one of them."""
    names = sorted(needed)
    return ForbiddenError(f"{what} needs the scope {joined.join(names)}.", details={"scopes": names})


@dataclass(frozen=True, slots=True)
class Caller:
    """`name` is a key's id or a token's issuer and subject; `namespace` is a tenant's part of the store, "" if shared.

    `is_local` marks the caller of a service that requires no credential: it may do and read everything.
    """

    name: str
    tenant: str
    namespace: str
    scopes: frozenset[Scope]
    is_local: bool = False

    def may(self, *scopes: Scope) -> bool:
        return self.scopes.issuperset(scopes)

    def require(self, what: str, scopes: Collection[Scope]) -> None:
        """ForbiddenError unless the caller has all of `scopes`."""
        if not self.scopes.issuperset(scopes):
            raise forbidden(what, scopes)

    def to_record(self) -> dict[str, Any]:
        """JSON from which `from_record` makes the same caller, for work that outlives its request."""
        return {**asdict(self), "scopes": sorted(self.scopes)}

    @staticmethod
    def from_record(record: Mapping[str, Any]) -> Caller:
        scopes = frozenset(Scope(scope) for scope in record["scopes"])
        return Caller(record["name"], record["tenant"], record["namespace"], scopes, record["is_local"])


LOCAL: Final = Caller(name="local", tenant="", namespace="", scopes=EVERYTHING, is_local=True)
"""The caller of public paths, and of every request to a service that requires no credential."""

_current: ContextVar[Caller] = ContextVar("caller")


def caller() -> Caller:
    """The caller on whose behalf this context runs. AssertionError when none is set."""
    current = _current.get(None)
    if current is None:
        raise AssertionError("work runs on behalf of nobody; wrap it in service.identity.caller.acting_as")
    return current


@contextmanager
def acting_as(who: Caller) -> Generator[None]:
    token = _current.set(who)
    try:
        yield
    finally:
        _current.reset(token)
