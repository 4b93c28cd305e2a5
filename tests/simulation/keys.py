"""A key that signs a thousand times faster than one of Ed25519, and that everybody believes who has it."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from service.trust.keyring import Keyring


@dataclass(frozen=True)
class Key:
    """As much of a `KeyFile` and of a `PublicKey` as a notary uses."""

    kid: str
    nbf: int = 0
    exp: int = 1 << 53

    def sign(self, message: bytes) -> str:
        return urlsafe_b64encode(hmac.digest(self.kid.encode(), message, "sha512")).rstrip(b"=").decode()

    def has_signed(self, message: bytes, signature: str) -> bool:
        return signature == self.sign(message)


_KEY: Final = Key("k" * 43)


class _Keys:
    """As much of a `Keyring` as a notary and a worker use."""

    def signer(self) -> Key:
        return _KEY

    def public(self) -> Mapping[str, Key]:
        return {_KEY.kid: _KEY}

    def publish(self) -> None:
        """There is nowhere to publish it."""


KEYS: Final = cast(Keyring, _Keys())
