"""Parser for JAX's symbolic dims, such as `2*n + -1` or `floordiv(n, 4)`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from ...errors import InvalidGraphError, UnsupportedGraphError
from ...expr import Dim, ExprError, add, floordiv, floormod, from_wire, maximum, minimum, mul, neg, sub

_MOST_CHARACTERS: Final = 1000
_MOST_POWER: Final = 8
_CALLS: Final[dict[str, Callable[[Dim, Dim], Dim]]] = {
    "floordiv": floordiv,
    "mod": floormod,
    "max": maximum,
    "min": minimum,
}
_INFIX: Final[dict[type[ast.operator], Callable[[Dim, Dim], Dim]]] = {ast.Add: add, ast.Sub: sub, ast.Mult: mul}


@lru_cache(1024)
def parse_dim(text: str) -> Dim:
    """Parse a dim. InvalidGraphError when `text` is not one, UnsupportedGraphError when it is too long."""
    if text.isascii() and text.isdigit() and len(text) < 20:
        return int(text)
    if len(text) > _MOST_CHARACTERS:
        raise UnsupportedGraphError(
            f"a dimension of {len(text)} characters is too long; the limit is {_MOST_CHARACTERS}"
        )
    try:
        # JAX writes a power as `n^2`.
        return _dim(ast.parse(text.replace("^", "**"), mode="eval").body, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError, ExprError):
        raise _unknown(text) from None


def _dim(node: ast.expr, text: str) -> Dim:
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
        case ast.Name(id=name):
            return from_wire(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return neg(_dim(operand, text))
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)) if 1 <= power <= _MOST_POWER:
            base = _dim(left, text)
            result = base
            for _ in range(power - 1):
                result = mul(result, base)
            return result
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _INFIX:
            return _INFIX[type(op)](_dim(left, text), _dim(right, text))
        case ast.Call(func=ast.Name(id=name), args=[left, right], keywords=[]) if name in _CALLS:
            return _CALLS[name](_dim(left, text), _dim(right, text))
        case _:
            raise _unknown(text)


def _unknown(text: str) -> InvalidGraphError:
    return InvalidGraphError(
        f"{text[:80]!r} cannot be read as a dimension: known are numbers, names, + - * ^, floordiv, mod, max, min"
    )
