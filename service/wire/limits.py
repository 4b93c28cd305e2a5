"""Limits of a request beside those of its graph."""

from __future__ import annotations

MAX_TARGETS = 16
"""Targets that one request may name."""

MAX_BUILDER_CHARACTERS = 1 << 16
"""Characters in the lines of the builder; their limit in bytes is the same number."""

MAX_BATCH = 256
"""Compile requests in one batch."""
