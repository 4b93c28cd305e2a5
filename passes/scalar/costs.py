"""What scalar operations take, counted in additions of 32 bits."""

from __future__ import annotations

from typing import Final

KNOWN_POWER: Final = 8
"""Powers whose exponent is known are mostly a few products, or a square root."""
THREEFRY: Final = 80
_FLOATS: Final[dict[str, int]] = {
    **dict.fromkeys(("div", "fdiv", "recip"), 8),
    "sqrt": 12,
    "exp2": 20,
    "log2": 50,
    "sin": 120,
    "pow": 160,
    "mod": 500,
}
"""Measured on chains of each, in the vectors of AVX-512."""
_INTEGERS: Final[dict[str, int]] = {**dict.fromkeys(("div", "idiv", "mod"), 40), "pow": 160}


def additions(kind: str, *, is_float: bool) -> int:
    """How many additions take as long as a binary or unary operation of `kind` on elements of 32 bits."""
    return (_FLOATS if is_float else _INTEGERS).get(kind, 1)
