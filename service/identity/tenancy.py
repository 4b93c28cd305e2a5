"""The parts of the engine that depend on the tenant: salts, digests of requests, and rights to read."""

from __future__ import annotations

import hmac
import json
from collections.abc import AsyncGenerator, Hashable, Iterable
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Final

from service.store.records import Records
from tensorkiln.errors import TensorkilnError

from .access import Access
from .caller import Scope, caller
from .keyring import Keyring

_REPRODUCER: Final = "reproducer"
_TO_COMPILE: Final = (Scope.COMPILE, Scope.CACHE_WRITE)


class Tenancy:
    """The tenants of `keyring` in one store. Every method acts for the caller of the current context."""

    def __init__(self, keyring: Keyring, records: Records, operator_salt: str) -> None:
        self._keyring = keyring
        self._operator_salt = operator_salt
        self._access = Access(records)

    @property
    def salt(self) -> str:
        """The salt of the caller's actions."""
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

        It depends on the caller: an answer is only as trustworthy as the process that wrote it, which may have read
        other requests of its caller before. Answers from a time when no credential was required are not found: they
        granted no right to read.
        """
        if caller().is_local:
            return body_digest
        return sha256(f"{self.owner}\n{self.salt}\n{body_digest}".encode()).hexdigest()

    @property
    def may_compile(self) -> bool:
        """Whether the caller may compile and store programs."""
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
    """The salt of a namespace; that of the shared one ("") is the operator's.

    A tenant's salt depends on the keyring's secret, so it cannot be guessed from the tenant's name.
    """
    if not namespace:
        return operator_salt
    return hmac.digest(secret, f"salt {namespace} {operator_salt}".encode(), sha256).hex()
