"""The body of a request, which is hashed while it arrives and read in the sandbox alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Body:
    """A body and its SHA-256."""

    content: bytes
    digest: str
