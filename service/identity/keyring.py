"""API keys and tenants in a directory: managed by an operator's command, read by running services.

`register.json` has the records, `secret` 32 random bytes in hexadecimal, on which the keys' hashes and the tenants'
salts depend. A key as text is `kiln_<id>_<secret><checksum>`, all letters and digits.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from service.trust.keyring import exclusive
from tensorkiln.errors import NotFoundError, RequestError, UnavailableError
from tensorkiln.reasons import reason
from tensorkiln.whole_file import whole_file

from .caller import Scope
from .register import KeyRecord, Register, TenantRecord

PREFIX: Final = "kiln_"
ID_CHARACTERS: Final = 10
# 43 characters of 62 are 256 bits.
SECRET_CHARACTERS: Final = 43
CHECKSUM_CHARACTERS: Final = 6

_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FORM: Final = re.compile(
    rf"{PREFIX}([0-9a-z]{{{ID_CHARACTERS}}})_([0-9A-Za-z]{{{SECRET_CHARACTERS}}})([0-9A-Za-z]{{{CHECKSUM_CHARACTERS}}})"
)
_SECRET_BYTES: Final = 32
_SHOWN: Final = 4
# Compared with when no key has the id, so that an unknown id takes as long to refuse as a wrong secret.
_NO_HASH: Final = "0" * 64


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key: `id` may be shown, `secret` may not."""

    id: str
    secret: str

    @property
    def text(self) -> str:
        """The key as its holder keeps it."""
        return f"{PREFIX}{self.id}_{self.secret}{_checksum(self.id, self.secret)}"

    def __repr__(self) -> str:
        return f"ApiKey({self.id})"


def new_key() -> ApiKey:
    return ApiKey(_draw(ID_CHARACTERS, _ALPHABET[:10] + _ALPHABET[36:]), _draw(SECRET_CHARACTERS, _ALPHABET))


def parse_key(text: str) -> ApiKey | None:
    """Parse a key; None when its form or its checksum is wrong: it was mistyped or cut off."""
    match = _FORM.fullmatch(text)
    if match is None or _checksum(match[1], match[2]) != match[3]:
        return None
    return ApiKey(match[1], match[2])


def _draw(length: int, alphabet: str) -> str:
    return "".join(secrets.choice(alphabet) for _ in range(length))


def _checksum(identifier: str, secret: str) -> str:
    number = int.from_bytes(sha256(f"{identifier}_{secret}".encode()).digest()[:8])
    digits: list[str] = []
    for _ in range(CHECKSUM_CHARACTERS):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(digits)


class Keyring:
    """The keyring in `directory`, which need not exist. UnavailableError when a file there cannot be used."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / "register.json"
        self._signature: tuple[int, int, int] | None = None
        self._register = Register()
        self._by_id: dict[str, KeyRecord] = {}
        self._secret: bytes | None = None

    @property
    def register(self) -> Register:
        """The records as they are now. UnavailableError when they cannot be read."""
        self._look()
        return self._register

    @property
    def secret(self) -> bytes:
        """The secret of this directory, made if missing. UnavailableError when keys or tenants depend on a lost one."""
        if self._secret is None:
            with self._writing():
                self._secret = self._read_secret()
                if self._secret is None:
                    self.require_secret()
                    made = secrets.token_bytes(_SECRET_BYTES)
                    _put(self._directory / "secret", made.hex())
                    self._secret = made
        return self._secret

    def require_secret(self) -> None:
        """Raise UnavailableError when there are keys or tenants but the secret they depend on is lost."""
        if not self.has_secret and (self.register.keys or self.register.tenants):
            raise UnavailableError(
                f"There is no {self._directory / 'secret'} (KILN_IDENTITY, or KILN_HOME), on which the API keys and the"
                " tenants' parts of the store depend: another would void them all. Restore it from where register.json"
                " is from; if it is lost, move register.json away too, and make new keys."
            )

    @property
    def has_secret(self) -> bool:
        """Whether there is a secret; this does not make one."""
        return self._secret is not None or self._read_secret() is not None

    def tenant(self, name: str) -> TenantRecord:
        """The record of a tenant; the defaults when it has none."""
        return self.register.tenants.get(name, TenantRecord())

    def verify(self, key: ApiKey) -> KeyRecord | None:
        """The record of `key` in any state; None when its id is unknown or its secret is wrong. Constant time."""
        self._look()
        record = self._by_id.get(key.id)
        is_right = hmac.compare_digest(record.hash if record is not None else _NO_HASH, self._hash(key))
        return record if is_right else None

    def make(self, name: str, tenant: str, scopes: Collection[Scope], lifetime: timedelta | None) -> ApiKey:
        """Make a key, of which only the hash is stored. RequestError for an invalid tenant name."""
        key, now = new_key(), _now()
        expires = now + lifetime if lifetime is not None else None
        record = {"id": key.id, "name": name, "hash": self._hash(key), "last4": key.text[-_SHOWN:], "tenant": tenant}
        try:
            made = KeyRecord.model_validate({**record, "scopes": scopes, "created": now, "expires": expires})
        except ValidationError as error:
            raise RequestError(_first(error)) from None
        with self._writing():
            self._write(self.register.model_copy(update={"keys": (*self.register.keys, made)}))
        return key

    def revoke(self, identifier: str) -> KeyRecord:
        """Revoke a key. NotFoundError when there is no such key."""
        with self._writing():
            register = self.register
            record = self._by_id.get(identifier)
            if record is None:
                raise NotFoundError(f"There is no key {identifier}.")
            revoked = record.model_copy(update={"revoked": record.revoked or _now()})
            keys = tuple(revoked if key.id == identifier else key for key in register.keys)
            self._write(register.model_copy(update={"keys": keys}))
        return revoked

    def set_tenant(self, name: str, record: TenantRecord) -> None:
        """Store the record of a tenant. RequestError for an invalid tenant name."""
        # Made with the first tenant, so that a secret which is missing later is a lost one.
        _ = self.secret
        with self._writing():
            tenants = {**self.register.tenants, name: record}
            try:
                changed = Register(keys=self.register.keys, tenants=tenants)
            except ValidationError as error:
                raise RequestError(_first(error)) from None
            self._write(changed)

    def _writing(self) -> AbstractContextManager[None]:
        return exclusive(self._directory, "lock", "KILN_IDENTITY")

    def _look(self) -> None:
        try:
            found = self._path.stat()
            signature = (found.st_ino, found.st_mtime_ns, found.st_size)
            if signature == self._signature:
                return
            register = Register.model_validate_json(self._path.read_bytes())
        except FileNotFoundError:
            signature, register = None, Register()
        except (OSError, ValidationError) as error:
            reason = _first(error) if isinstance(error, ValidationError) else error.strerror
            raise UnavailableError(
                f"The keys in {self._path} (KILN_IDENTITY, or KILN_HOME) cannot be read: {reason}"
            ) from None
        self._register, self._signature = register, signature
        self._by_id = {key.id: key for key in register.keys}

    def _write(self, register: Register) -> None:
        _put(self._path, register.model_dump_json(indent=2))

    def _hash(self, key: ApiKey) -> str:
        return hmac.digest(self.secret, f"key {key.id} {key.secret}".encode(), sha256).hex()

    def _read_secret(self) -> bytes | None:
        path = self._directory / "secret"
        try:
            secret = bytes.fromhex(path.read_text("ascii"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise UnavailableError(
                f"The secret in {path} (KILN_IDENTITY, or KILN_HOME) cannot be read: {error}."
            ) from None
        if len(secret) != _SECRET_BYTES:
            raise UnavailableError(f"The secret in {path} has {len(secret)} bytes, not {_SECRET_BYTES}.")
        return secret


def _put(path: Path, text: str) -> None:
    with whole_file(path, 0o600) as file:
        file.write(text.encode())


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _first(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    return f"{'/'.join(str(step) for step in problem['loc'])}: {reason(problem)}."
