"""The body of a request. It is hashed while it arrives, and parsed only in the sandbox."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Body:
    """A body and its SHA-256."""

    content: bytes
    digest: str
