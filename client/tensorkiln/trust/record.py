"""The signed record of a compile."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from ..limits import SHA256_PATTERN
from ..nodes.base import Record
from .encoding import canonical_json

DOMAIN: Final = b"tensorkiln action record v1\0"
"""Prefix of the signed JSON (domain separation): no other signature by the same key is valid for a record."""

Sha256 = Annotated[str, Field(pattern=SHA256_PATTERN)]
Thumbprint = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{43}$")]
Signature = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{86}$")]


class _Signed(Record):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class RequestedAction(_Signed):
    """What was asked for: the components of the action digest, less the build, which the record names, and the salt."""

    abi: int
    graph: Sha256
    options: dict[str, Any]
    schema_version: int = Field(alias="schema")
    target: dict[str, Any]


class ActionRecord(_Signed):
    """One compile and what came out.

    `program` is the SHA-256 of the program's JSON in canonical names, `artifacts` those of all that it names, sorted;
    `stages` those of its dumps by stage. `key` is the RFC 7638 thumbprint of the key that signs. `issued_at` is in
    seconds since 1970; it and `worker` differ from one compile of an action to the next, nothing else does.
    """

    version: Literal[1] = 1
    action: Sha256
    request: RequestedAction
    program: Sha256
    artifacts: tuple[Sha256, ...]
    stages: dict[str, Sha256]
    build_id: str
    isolation: str
    worker: Annotated[str, Field(max_length=255)]
    key: Thumbprint
    issued_at: int


class SignedRecord(_Signed):
    """A record and the Ed25519 signature (RFC 8032) over `signed_bytes` of it, in base64url."""

    record: ActionRecord
    signature: Signature

    def to_json(self) -> bytes:
        """The record as it is stored and sent."""
        return canonical_json(self.model_dump(mode="json", by_alias=True))


def signed_bytes(record: ActionRecord) -> bytes:
    """The bytes that the signature of `record` covers."""
    return DOMAIN + canonical_json(record.model_dump(mode="json", by_alias=True))
