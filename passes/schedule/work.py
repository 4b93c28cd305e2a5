"""What the scalar operations of one element take, counted in additions of 32 bits."""

from __future__ import annotations

from typing import Final

from ..loops.scalar_dag import Apply, Constant

_DIVISION: Final = 8
_FLOATS: Final[dict[str, int]] = {
    **dict.fromkeys(("div", "fdiv", "recip"), _DIVISION),
    "sqrt": 12,
    "exp2": 20,
    "log2": 50,
    "sin": 120,
    "pow": 160,
    "mod": 500,
}
"""Measured on chains of each, with AVX-512 vectors, against `tensorkiln.schedule.estimate.NS_PER_OPERATION`."""
_INTEGERS: Final[dict[str, int]] = {**dict.fromkeys(("div", "idiv", "mod"), 40), "pow": 160}
_THREEFRY: Final = 80


def additions(node: Apply) -> int:
    """How many additions of 32 bits take as long as `node`: twice as many in 64 bits, of which a vector has half."""
    return _of_32_bits(node) * (2 if node.args[0].dtype.itemsize == 8 else 1)


def _of_32_bits(node: Apply) -> int:
    if node.op == "threefry":
        return _THREEFRY
    if node.op not in ("binop", "unary"):
        return 1
    kind = str(node.attributes[0])
    if kind == "pow" and isinstance(node.args[1], Constant):
        # Powers that are known are mostly a few products, or a square root.
        return _DIVISION
    return (_FLOATS if node.args[0].dtype.is_float else _INTEGERS).get(kind, 1)
