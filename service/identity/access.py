"""Rights to read stored bytes. A digest is no password: it appears in logs, in answers, in other programs.

A tenant may read an artifact or a program that one of its own answers named. Only the sender of a request may read the
reproducer of its crash. Each right is a record in the store, so that all services of a store agree.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from service.store.blobs import FRESH_S
from service.store.inventory import right_of
from service.store.records import Records

from .caller import Caller, Scope

_MAX_REMEMBERED: Final = 1 << 16


class Access:
    """The rights that are kept in `records`."""

    def __init__(self, records: Records) -> None:
        self._records = records
        # When each was last written here.
        self._known: dict[tuple[str, str], float] = {}

    async def grant(self, caller: Caller, digests: Iterable[str]) -> None:
        """Let the tenant of `caller` read these digests, and `caller` itself if it lacks `CACHE_READ`."""
        wanted = list(dict.fromkeys(digests))
        owners = [_tenant(caller)] if caller.may(Scope.CACHE_READ) else [_tenant(caller), _own(caller)]
        await self._grant((owner, digest) for owner in owners for digest in wanted)

    async def grant_alone(self, caller: Caller, digest: str) -> None:
        """Let only `caller` read this digest."""
        await self._grant([(_own(caller), digest)])

    async def allows(self, caller: Caller, digest: str) -> bool:
        """Whether `caller` may read this digest, stored or not."""
        if caller.is_local or await self._has(_own(caller), digest):
            return True
        return caller.may(Scope.CACHE_READ) and await self._has(_tenant(caller), digest)

    async def _grant(self, rights: Iterable[tuple[str, str]]) -> None:
        # An older right may have been evicted together with its blob, which may be stored again by now.
        now = time.monotonic()
        new = [right for right in rights if now - self._known.get(right, -math.inf) > FRESH_S]
        await asyncio.gather(*(self._records.put(_path(*right), {}) for right in new))
        self._remember(new, now)

    async def _has(self, owner: str, digest: str) -> bool:
        if (owner, digest) in self._known:
            return True
        if await self._records.get(_path(owner, digest)) is None:
            return False
        self._remember([(owner, digest)], -math.inf)
        return True

    def _remember(self, rights: Iterable[tuple[str, str]], written: float) -> None:
        if len(self._known) >= _MAX_REMEMBERED:
            self._known.clear()
        self._known.update(dict.fromkeys(rights, written))


def folders_of(tenant: str, names: Iterable[str]) -> frozenset[str]:
    """The folders with the rights of a tenant that has its own store, and of its callers with these names."""
    return frozenset(map(folder_of, (_owner(tenant), *(_single_owner(tenant, name) for name in names))))


def _tenant(caller: Caller) -> str:
    return _owner(caller.namespace)


def _own(caller: Caller) -> str:
    return _single_owner(caller.tenant, caller.name)


def _owner(namespace: str) -> str:
    return f"tenant {namespace}"


def _single_owner(tenant: str, name: str) -> str:
    return f"caller {tenant} {name}"


def folder_of(owner: str) -> str:
    """A name for the owner's folder in the store, whatever characters the owner's name has."""
    return sha256(owner.encode()).hexdigest()[:32]


def _path(owner: str, digest: str) -> str:
    return right_of(folder_of(owner), digest)
