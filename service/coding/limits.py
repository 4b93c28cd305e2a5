"""Bounds of coded bodies, beside that of the body which they decode to."""

from __future__ import annotations

from typing import Final

MAX_RATIO: Final = 200
"""Decoded bytes for each that was sent, in however many codings, once there are FREE_BYTES. Graphs come to about 50."""
FREE_BYTES: Final = 1 << 20
MAX_WINDOW_BYTES: Final = 8 << 20
"""What RFC 9659 lets a zstd encoder ask of its reader."""
MAX_FRAMES: Final = 64
MAX_CODINGS: Final = 2
