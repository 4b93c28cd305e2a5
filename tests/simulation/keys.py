"""A symmetric key for signatures, a thousand times faster than Ed25519."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from service.trust.keyring import Keyring


@dataclass(frozen=True)
class Key:
    """The part of `KeyFile` and `PublicKey` that a notary uses."""

    kid: str
    nbf: int = 0
    exp: int = 1 << 53

    def sign(self, message: bytes) -> str:
        return urlsafe_b64encode(hmac.digest(self.kid.encode(), message, "sha512")).rstrip(b"=").decode()

    def has_signed(self, message: bytes, signature: str) -> bool:
        return signature == self.sign(message)


_KEY: Final = Key("k" * 43)


class _Keys:
    """The part of `Keyring` that notaries and workers use."""

    def signer(self) -> Key:
        return _KEY

    def public(self) -> Mapping[str, Key]:
        return {_KEY.kid: _KEY}

    def publish(self) -> None:
        """Nothing to publish."""


KEYS: Final = cast(Keyring, _Keys())
