"""The parts of the engine that depend on the tenant: salts, digests of requests, and rights to read."""

from __future__ import annotations

import asyncio
import hmac
import json
import math
import time
from collections.abc import AsyncGenerator, Hashable, Iterable
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Final

from service.store.blobs import FRESH_S
from service.store.inventory import right_of
from service.store.records import Records
from tensorkiln.errors import TensorkilnError

from .caller import Caller, Scope, caller
from .keyring import Keyring

_REPRODUCER: Final = "reproducer"
_TO_COMPILE: Final = (Scope.COMPILE, Scope.CACHE_WRITE)
_MAX_REMEMBERED: Final = 1 << 16


class Tenancy:
    """The tenants of `keyring` in one store. Every method acts for the caller of the current context."""

    def __init__(self, keyring: Keyring, records: Records, operator_salt: str) -> None:
        self._keyring = keyring
        self._operator_salt = operator_salt
        self._access = Access(records)

    @property
    def salt(self) -> str:
        namespace = caller().namespace
        return salt_of(namespace, self._operator_salt, self._keyring.secret if namespace else b"")

    @property
    def scope(self) -> str:
        """Names the caller's part of the store, whatever the operator's salt. A tenant's own cannot be guessed."""
        namespace = caller().namespace
        return salt_of(namespace, "", self._keyring.secret if namespace else b"")

    @property
    def reads_store(self) -> bool:
        """Whether the caller may be answered from the store."""
        return caller().may(Scope.CACHE_READ)

    @property
    def equals(self) -> Hashable:
        """Equal for callers with the same rights, which may share one compile (single-flight)."""
        who = caller()
        return who.namespace, who.scopes, None if who.may(Scope.CACHE_READ) else (who.tenant, who.name)

    @property
    def owner(self) -> str:
        """A digest of the caller's identity and rights."""
        return sha256(json.dumps(caller().to_record(), sort_keys=True).encode()).hexdigest()

    def request_digest(self, body_digest: str) -> str:
        """The digest by which this caller's answers to requests with the same body are found.

        It depends on the caller: an answer is only as trustworthy as the process that wrote it.
        """
        if caller().is_local:
            return body_digest
        return sha256(f"{self.owner}\n{self.salt}\n{body_digest}".encode()).hexdigest()

    @property
    def may_compile(self) -> bool:
        return caller().may(*_TO_COMPILE)

    def require_compile(self) -> None:
        """Raise ForbiddenError unless the caller may compile and store programs."""
        caller().require("A program that is not stored is compiled and stored, which", _TO_COMPILE)

    def require_store(self) -> None:
        """Raise ForbiddenError unless the caller may be answered from the store."""
        caller().require("Measurements are stored for all callers, which", (Scope.CACHE_READ,))

    async def grant(self, digests: Iterable[str]) -> None:
        """Let the caller's tenant read these digests, which an answer names."""
        if not caller().is_local:
            await self._access.grant(caller(), digests)

    async def allows(self, digest: str) -> bool:
        """Whether the caller may read the artifact or the program with this digest, stored or not."""
        return await self._access.allows(caller(), digest)

    @asynccontextmanager
    async def reproducers(self) -> AsyncGenerator[None]:
        """Let only the caller read the reproducer of an error that ends the block."""
        try:
            yield
        except TensorkilnError as error:
            digest = error.details.get(_REPRODUCER)
            if isinstance(digest, str) and not caller().is_local:
                await self._access.grant_alone(caller(), digest)
            raise


def salt_of(namespace: str, operator_salt: str, secret: bytes) -> str:
    """The salt of a namespace, which cannot be guessed without the secret; of the shared one (""), the operator's."""
    if not namespace:
        return operator_salt
    return hmac.digest(secret, f"salt {namespace} {operator_salt}".encode(), sha256).hex()


class Access:
    """Rights to read stored bytes, kept in `records` so that all services of a store agree: a digest is no password.

    A tenant may read what its own answers named; only the sender of a request may read the reproducer of its crash.
    """

    def __init__(self, records: Records) -> None:
        self._records = records
        # When each was last written here, by its path.
        self._known: dict[str, float] = {}

    async def grant(self, caller: Caller, digests: Iterable[str]) -> None:
        """Let the tenant of `caller` read these digests, and `caller` itself if it lacks `CACHE_READ`."""
        wanted = list(dict.fromkeys(digests))
        folders = [_folder("tenant", caller.namespace)]
        if not caller.may(Scope.CACHE_READ):
            folders.append(_folder("caller", caller.tenant, caller.name))
        await self._grant([right_of(folder, digest) for folder in folders for digest in wanted])

    async def grant_alone(self, caller: Caller, digest: str) -> None:
        """Let only `caller` read this digest."""
        await self._grant([right_of(_folder("caller", caller.tenant, caller.name), digest)])

    async def allows(self, caller: Caller, digest: str) -> bool:
        """Whether `caller` may read this digest, stored or not."""
        if caller.is_local or await self._has(right_of(_folder("caller", caller.tenant, caller.name), digest)):
            return True
        return caller.may(Scope.CACHE_READ) and await self._has(right_of(_folder("tenant", caller.namespace), digest))

    async def _grant(self, rights: Iterable[str]) -> None:
        # An older right may have been evicted together with its blob, which may be stored again by now.
        now = time.monotonic()
        new = [right for right in rights if now - self._known.get(right, -math.inf) > FRESH_S]
        await asyncio.gather(*(self._records.put(right, {}) for right in new))
        self._remember(new, now)

    async def _has(self, right: str) -> bool:
        if right in self._known:
            return True
        if await self._records.get(right) is None:
            return False
        self._remember([right], -math.inf)
        return True

    def _remember(self, rights: Iterable[str], written: float) -> None:
        if len(self._known) >= _MAX_REMEMBERED:
            self._known.clear()
        self._known.update(dict.fromkeys(rights, written))


def folders_of(tenant: str, names: Iterable[str]) -> frozenset[str]:
    """The folders with the rights of a tenant that has its own store, and of its callers with these names."""
    return frozenset((_folder("tenant", tenant), *(_folder("caller", tenant, name) for name in names)))


def _folder(*owner: str) -> str:
    """A name for the folder of a tenant or a caller in the store, whatever characters the owner's name has."""
    return sha256(" ".join(owner).encode()).hexdigest()[:32]
