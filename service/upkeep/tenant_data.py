"""The data of one tenant in a store: everything whose action has its salt, its jobs, and its rights to read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from service.action import Action
from service.engine.reproducer import reproduced_action
from service.identity.access import folders_of
from service.identity.keyring import Keyring
from service.identity.register import TENANT_PATTERN
from service.identity.tenancy import salt_of
from service.store.nearest import shown_salt
from tensorkiln.compiler_build import build
from tensorkiln.errors import RequestError

from .purge import Mark


def tenant_data(keyring: Keyring, tenant: str, operator_salt: str) -> Mark:
    """Select the data of `tenant` that was stored with this operator's salt.

    RequestError when the tenant shares its part of the store with others, and for an invalid name: the empty name would
    have the salt of the shared part.
    """
    if re.fullmatch(TENANT_PATTERN, tenant) is None:
        raise RequestError(f"No tenant is called {tenant!r}.")
    if keyring.tenant(tenant).shared:
        raise RequestError(
            f"The tenant {tenant} shares its store with others, whose entries cannot be told from its own. What it "
            f"stored while it had its own can be purged after "
            f"`python -m tensorkiln_server identity tenant {tenant} --no-shared`."
        )
    if not keyring.has_secret:
        raise RequestError("There are no tenants: KILN_IDENTITY, or KILN_HOME, has no secret to tell them apart by.")
    names = (key.holder for key in keyring.register.keys if key.tenant == tenant)
    salt = salt_of(tenant, operator_salt, keyring.secret)
    return _OfTenant(owners=folders_of(tenant, names), tenant=tenant, salt=salt)


@dataclass(frozen=True, kw_only=True)
class _OfTenant(Mark):
    """No record has the salt: an action is the tenant's when its components and the salt give its digest."""

    tenant: str
    salt: str

    def has_program(self, action: str, record: Mapping[str, Any]) -> bool:
        try:
            components = {**record["request"], "build_id": record["build_id"], "salt": self.salt}
            return Action.from_components(components).digest == action
        except (KeyError, TypeError):
            return False

    def has_answer(self, answer: bytes) -> bool:
        """As in `Mark`: an answer has the signed records of its programs."""
        try:
            records = [signed["record"] for signed in json.loads(answer)["signatures"] if signed is not None]
            return any(self.has_program(record["action"], record) for record in records)
        except (ValueError, KeyError, TypeError, RecursionError):
            return False

    def has_job(self, caller: Any) -> bool:
        return isinstance(caller, Mapping) and caller.get("namespace") == self.tenant

    def has_crash(self, name: str, reproducer: bytes) -> bool:
        """As in `Mark`, for crashes of this build only: those of other builds have expired."""
        action = reproduced_action(reproducer, build().build_id, self.salt)
        return action is not None and sha256(action.digest.encode()).hexdigest() == name.partition(".")[0]

    def has_neighbour(self, components: Mapping[str, Any]) -> bool:
        return components.get("salt") == shown_salt(self.salt)
