"""Costs of scalar operations, in 32-bit additions."""

from __future__ import annotations

from typing import Final

KNOWN_POWER: Final = 8
"""Powers with a constant exponent are mostly a few products, or a square root."""
_THREEFRY: Final = 80
_FLOATS: Final[dict[str, int]] = {
    **dict.fromkeys(("div", "fdiv", "recip"), 8),
    "sqrt": 12,
    "exp2": 20,
    "log2": 50,
    "sin": 120,
    "pow": 160,
    "mod": 500,
}
"""Measured on dependent chains of each operation, in AVX-512 vectors."""
_INTEGERS: Final[dict[str, int]] = {**dict.fromkeys(("div", "idiv", "mod"), 40), "pow": 160}


def additions(op: str, kind: str, *, is_float: bool) -> int:
    """The cost of an operation `op`, if it is a binop or unary of this `kind`, on 32-bit elements, in additions."""
    if op in ("binop", "unary"):
        return (_FLOATS if is_float else _INTEGERS).get(kind, 1)
    return _THREEFRY if op == "threefry" else 1
