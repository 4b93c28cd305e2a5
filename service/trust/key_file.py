"""One key in one file, which only its owner can read while it can sign."""

from __future__ import annotations

import os
import stat
from functools import lru_cache
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import ValidationError

from tensorkiln.errors import UnavailableError
from tensorkiln.trust.encoding import from_base64url, to_base64url
from tensorkiln.trust.keys import Endorsement, PublicKey, endorsed_bytes, thumbprint
from tensorkiln.whole_file import whole_file

SUFFIX = ".jwk"


class KeyFile(PublicKey):
    """A JSON Web Key of RFC 8037. `d` is the private half, which is dropped when the key has a successor."""

    d: str | None = None

    @staticmethod
    def fresh(nbf: int, exp: int) -> KeyFile:
        """A new key that is valid from `nbf` until before `exp`, seconds since 1970."""
        private = Ed25519PrivateKey.generate()
        x = to_base64url(private.public_key().public_bytes_raw())
        return KeyFile(kid=thumbprint(x), x=x, nbf=nbf, exp=exp, d=to_base64url(private.private_bytes_raw()))

    @property
    def public(self) -> PublicKey:
        """The key without its private half."""
        return PublicKey.model_validate(self.model_dump(exclude={"d"}))

    def sign(self, message: bytes) -> str:
        """The signature in base64url. The key must have its private half."""
        assert self.d is not None, "a key with a successor signs no more"
        return to_base64url(_private(self.d).sign(message))

    def endorsed_by(self, older: KeyFile) -> KeyFile:
        """This key with an endorsement signed by an older one."""
        endorsement = Endorsement(kid=older.kid, signature=older.sign(endorsed_bytes(self)))
        return self.model_copy(update={"endorsement": endorsement})


@lru_cache(maxsize=4)
def _private(d: str) -> Ed25519PrivateKey:
    """Cached, because loading a key takes as long as signing."""
    return Ed25519PrivateKey.from_private_bytes(from_base64url(d))


def read_key(path: Path) -> KeyFile:
    """Read a key. UnavailableError when the file holds none, or when other users may open a private key."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            key = KeyFile.model_validate_json(file.read())
    except (OSError, ValidationError) as error:
        raise UnavailableError(f"The key {path} cannot be used: {error}.") from error
    if key.d is not None and mode & 0o077:
        raise UnavailableError(f"The key {path} is open to others (mode {mode:o}): run chmod 600 on it, or rotate it.")
    return key


def write_key(directory: Path, key: KeyFile) -> None:
    """Write or replace the file of a key, for its owner alone if it can sign. OSError when that is not possible."""
    with whole_file(directory / f"{key.kid}{SUFFIX}", 0o600 if key.d is not None else 0o644) as file:
        file.write(key.model_dump_json(exclude_none=True).encode() + b"\n")
