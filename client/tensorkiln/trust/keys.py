"""Public keys: JSON Web Keys of the kind OKP with the curve Ed25519 (RFC 8037), valid for a time."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from ..nodes.base import Record
from .encoding import canonical_json, from_base64url, to_base64url
from .record import Signature, Thumbprint

DOMAIN: Final = b"tensorkiln key v1\0"
FOR_EVER: Final = 1 << 53
"""The end of a key that is pinned without one, in seconds since 1970."""

_KEY_BYTES: Final = 32


class Endorsement(Record):
    """An older key vouches for a newer one: `kid` is the older key, and `signature` its signature of the newer.

    `endorsed_bytes` are the bytes that it signs.
    """

    kid: Thumbprint
    signature: Signature


class PublicKey(Record):
    """A key by whose signature a record is believed from `nbf` until before `exp`, seconds since 1970.

    `kid` is the key's RFC 7638 thumbprint. ValueError (through pydantic) when it is another's.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    kty: Literal["OKP"] = "OKP"
    crv: Literal["Ed25519"] = "Ed25519"
    use: Literal["sig"] = "sig"
    alg: Literal["EdDSA"] = "EdDSA"
    kid: Thumbprint
    x: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{43}$")]
    nbf: int
    exp: int
    endorsement: Endorsement | None = None

    @model_validator(mode="after")
    def _kid_is_the_thumbprint(self) -> Self:
        if self.kid != thumbprint(self.x):
            raise ValueError("kid is not the thumbprint of the key")
        return self

    @staticmethod
    def of(x: str, *, nbf: int = 0, exp: int = FOR_EVER) -> PublicKey:
        """The key with these 32 bytes in base64url. ValueError when they are not that."""
        return PublicKey(kid=thumbprint(x), x=x, nbf=nbf, exp=exp)

    def has_signed(self, message: bytes, signature: str) -> bool:
        """Whether `signature` (base64url) is this key's signature of `message`."""
        # Imported late: a client that only builds or runs graphs does not need the library.
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(from_base64url(self.x)).verify(from_base64url(signature), message)
        except (InvalidSignature, ValueError):
            return False
        return True


class KeySet(Record):
    """The body of `GET /keys` (RFC 7517 section 5)."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    keys: tuple[PublicKey, ...]


def thumbprint(x: str) -> str:
    """The RFC 7638 thumbprint of an Ed25519 key given in base64url. ValueError unless it has 32 bytes."""
    if len(from_base64url(x)) != _KEY_BYTES:
        raise ValueError("an Ed25519 key has 32 bytes")
    return to_base64url(sha256(canonical_json({"crv": "Ed25519", "kty": "OKP", "x": x})).digest())


def endorsed_bytes(key: PublicKey) -> bytes:
    """The bytes that an endorsement of `key` signs. They exclude its end, which may be moved forward."""
    return DOMAIN + canonical_json({"kid": key.kid, "nbf": key.nbf})


def with_endorsed(
    trusted: Mapping[str, PublicKey], offered: Iterable[PublicKey], ended: Collection[str] = ()
) -> dict[str, PublicKey]:
    """`trusted`, and the keys of `offered` that a trusted key endorses, transitively; by `kid`.

    `offered` can move the end of a trusted key forward, but not back. Keys whose `kid` is in `ended` cannot endorse new
    keys: the maker of a key chooses `nbf`, so a thief could choose one before the end of a stolen key.
    """
    known = dict(trusted)
    waiting = {key.kid: key for key in offered}
    for kid in known.keys() & waiting.keys():
        known[kid] = known[kid].model_copy(update={"exp": min(known[kid].exp, waiting.pop(kid).exp)})
    while fresh := [key for key in waiting.values() if _is_endorsed(key, known, ended)]:
        known |= {key.kid: waiting.pop(key.kid) for key in fresh}
    return known


def _is_endorsed(key: PublicKey, known: Mapping[str, PublicKey], ended: Collection[str]) -> bool:
    if key.endorsement is None or key.endorsement.kid in ended:
        return False
    endorser = known.get(key.endorsement.kid)
    # `<=`: a key may end in the second in which its successor begins.
    if endorser is None or not endorser.nbf <= key.nbf <= endorser.exp:
        return False
    return endorser.has_signed(endorsed_bytes(key), key.endorsement.signature)


def is_valid_in(directory: Path, kid: str) -> bool:
    """Whether a key of the embedded service, whose keys are in this directory, has neither expired nor been revoked."""
    try:
        key = PublicKey.model_validate_json((directory / f"{kid}.jwk").read_bytes())
    except (OSError, ValueError):
        return False
    return key.kid == kid and key.exp > time.time()
