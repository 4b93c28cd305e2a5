"""A tenant's part in the digest of an action: what one tenant stores, another does not find."""

from __future__ import annotations

import hmac
from hashlib import sha256


def salt_of(namespace: str, operator_salt: str, secret: bytes) -> str:
    """The salt of a namespace. That of the shared one ("") is the operator's own.

    A tenant's cannot be guessed by somebody who knows its name: it depends on the keyring's secret.
    """
    if not namespace:
        return operator_salt
    return hmac.digest(secret, f"salt {namespace} {operator_salt}".encode(), sha256).hex()


def folder_of(owner: str) -> str:
    """A name for the owner's folder in the store, whatever characters the owner's name has."""
    return sha256(owner.encode()).hexdigest()[:32]
