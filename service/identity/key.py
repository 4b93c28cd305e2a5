"""API keys as text: `kiln_<id>_<secret><checksum>`, all letters and digits, so that a double click selects one."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

PREFIX: Final = "kiln_"
ID_CHARACTERS: Final = 10
# 43 characters of 62 are 256 bits.
SECRET_CHARACTERS: Final = 43
CHECKSUM_CHARACTERS: Final = 6

_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FORM: Final = re.compile(
    rf"{PREFIX}([0-9a-z]{{{ID_CHARACTERS}}})_([0-9A-Za-z]{{{SECRET_CHARACTERS}}})([0-9A-Za-z]{{{CHECKSUM_CHARACTERS}}})"
)


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
    """Generate a random key."""
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
