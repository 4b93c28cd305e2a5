"""The scopes that a credential may have."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Final

from tensorkiln.errors import ForbiddenError


class Scope(StrEnum):
    """`COMPILE` spends processor time, `CACHE_READ` reads what its tenant has stored, `CACHE_WRITE` adds to it.

    `ADMIN` reads how the service is doing; it includes none of the others.
    """

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
