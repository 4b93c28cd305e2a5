"""Reasons of cache hits, in answers and metrics."""

from __future__ import annotations

from typing import Final

from tensorkiln.spec import CacheInfo

SAME_REQUEST: Final = CacheInfo(status="hit", reason="same request")
SAME_ACTION: Final = CacheInfo(status="hit", reason="same action")
