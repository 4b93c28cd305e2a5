"""What is different for each tenant in the engine: salts, keys of requests, and who may read what."""

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
from .caller import caller
from .keyring import Keyring
from .scopes import Scope

_REPRODUCER: Final = "reproducer"
_TO_COMPILE: Final = (Scope.COMPILE, Scope.CACHE_WRITE)


class Tenancy:
    """The tenants of `keyring` in one store. Every method is about the caller of the context that it is called in."""

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
        """The part of the store that the caller works on, whatever the operator's salt. Others cannot guess it."""
        namespace = caller().namespace
        return salt_of(namespace, "", self._keyring.secret if namespace else b"")

    @property
    def reads_store(self) -> bool:
        """Whether the caller may be answered with what is stored."""
        return caller().may(Scope.CACHE_READ)

    @property
    def equals(self) -> Hashable:
        """Callers that are equal in this may wait for one another's work: what one may do, the other may."""
        who = caller()
        return who.namespace, who.scopes, None if who.may(Scope.CACHE_READ) else (who.tenant, who.name)

    @property
    def owner(self) -> str:
        """Who the caller is and what it may do, in a word that says neither."""
        return sha256(json.dumps(caller().to_record(), sort_keys=True).encode()).hexdigest()

    def request_digest(self, body_digest: str) -> str:
        """What an earlier request by this caller with the same body has in common with this one.

        By this caller alone: what read that request may have read others of its caller before, and an answer is no
        better than what wrote it. Answers that were given while no credential was asked for are not found: they gave
        nobody a right to read.
        """
        if caller().is_local:
            return body_digest
        return sha256(f"{self.owner}\n{self.salt}\n{body_digest}".encode()).hexdigest()

    @property
    def may_compile(self) -> bool:
        """Whether the caller may have something compiled and stored."""
        return caller().may(*_TO_COMPILE)

    def require_compile(self) -> None:
        """ForbiddenError unless the caller may have something compiled and stored."""
        caller().require("A program that is not stored is compiled and stored, which", _TO_COMPILE)

    def require_store(self) -> None:
        """ForbiddenError unless the caller may be answered with what is stored."""
        caller().require("Measurements are stored for all callers, which", (Scope.CACHE_READ,))

    async def grant(self, digests: Iterable[str]) -> None:
        """Let the caller's tenant read these, because an answer names them."""
        if not caller().is_local:
            await self._access.grant(caller(), digests)

    async def allows(self, digest: str) -> bool:
        """Whether the caller may read the artifact or the program with this digest, be it there or not."""
        return await self._access.allows(caller(), digest)

    @asynccontextmanager
    async def reproducers(self) -> AsyncGenerator[None]:
        """Let the caller, and nobody else, read the reproducer of an error that ends the block."""
        try:
            yield
        except TensorkilnError as error:
            digest = error.details.get(_REPRODUCER)
            if isinstance(digest, str) and not caller().is_local:
                await self._access.grant_alone(caller(), digest)
            raise


def salt_of(namespace: str, operator_salt: str, secret: bytes) -> str:
    """The salt of a namespace. That of the shared one ("") is the operator's own.

    A tenant's cannot be guessed by somebody who knows its name: it depends on the keyring's secret.
    """
    if not namespace:
        return operator_salt
    return hmac.digest(secret, f"salt {namespace} {operator_salt}".encode(), sha256).hex()
