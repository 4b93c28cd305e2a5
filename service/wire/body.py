"""The body of a request, which is hashed while it arrives and parsed only in the sandbox; and its limits."""

from __future__ import annotations

from dataclasses import dataclass

MAX_TARGETS = 16
"""Targets that one request may name."""
MAX_BUILDER_CHARACTERS = 1 << 16
"""Characters in the lines of the builder; their limit in bytes is the same number."""
MAX_BATCH = 256
"""Compile requests in one batch."""


@dataclass(frozen=True, slots=True)
class Body:
    """A body and its SHA-256."""

    content: bytes
    digest: str
