"""The result of a compile's look-up in the store."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..limits import SHA256_PATTERN
from ..nodes.base import Record


class CacheInfo(Record):
    """Whether the program was found or made, and why.

    `nearest` is the digest of the stored program that is nearest to one that was not, `differs` the components of the
    two action digests that differ, such as `graph` or `options.fast_math`.
    """

    status: Literal["hit", "miss"]
    reason: str = ""
    nearest: str | None = Field(default=None, pattern=SHA256_PATTERN)
    differs: tuple[str, ...] = ()
