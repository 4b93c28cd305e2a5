"""Signatures beside the programs of an answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pydantic import TypeAdapter, ValidationError

from tensorkiln.trust import SignedRecord

_KEY: Final = b',"signatures":'
"""Cannot occur inside a JSON string, where quotes are escaped."""
_SIGNATURES: Final = TypeAdapter(tuple[SignedRecord | None, ...])


def with_signatures(answer: bytes, signatures: Iterable[str]) -> bytes:
    """An answer to a compile request, as JSON, with the signed record (JSON) of each program; empty means unsigned."""
    listed = b",".join(signature.encode() or b"null" for signature in signatures)
    return b"%b%b[%b]}" % (answer.removesuffix(b"}"), _KEY, listed)


def signatures_of(answer: bytes) -> tuple[SignedRecord | None, ...]:
    """The signatures that `with_signatures` added to an answer, whose programs are not parsed; empty without any."""
    try:
        return _SIGNATURES.validate_json(answer.rpartition(_KEY)[2].removesuffix(b"}"))
    except ValidationError:
        return ()
