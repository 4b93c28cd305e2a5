"""Checked 64-bit arithmetic of launch sizes, one function per operand count. Every failure is a `CallBoundsError`."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import CallBoundsError
from ..expr import INT64_MAX, INT64_MIN
from .nodes import BinaryOp, TernaryOp, UnaryOp

_MAX_EXPONENT = (1 << 32) - 1


def _truncated(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _divides(left: int, right: int) -> bool:
    return right != 0 and not (left == INT64_MIN and right == -1)


def _power(base: int, exponent: int) -> int | None:
    if not 0 <= exponent <= _MAX_EXPONENT:
        return None
    if base in (0, 1, -1):
        return int(base) ** (exponent if exponent < 2 else 2 + exponent % 2)
    return base**exponent if exponent < 64 else None


_WRAP = 1 << 64


def _shifted_left(left: int, right: int) -> int | None:
    """The 64-bit pattern shifted, as a machine shift does: bits that leave at the top are lost, not an overflow."""
    if not 0 <= right < 64:
        return None
    value = (left << right) % _WRAP
    return value - _WRAP if value > INT64_MAX else value


_BINARY: dict[BinaryOp, Callable[[int, int], int | None]] = {
    BinaryOp.ADD: lambda left, right: left + right,
    BinaryOp.SUB: lambda left, right: left - right,
    BinaryOp.MUL: lambda left, right: left * right,
    BinaryOp.IDIV: lambda left, right: _truncated(left, right) if _divides(left, right) else None,
    BinaryOp.CDIV: lambda left, right: _truncated(left, right) if _divides(left, right) else None,
    BinaryOp.MOD: lambda left, right: left - _truncated(left, right) * right if _divides(left, right) else None,
    BinaryOp.CMOD: lambda left, right: left - _truncated(left, right) * right if _divides(left, right) else None,
    BinaryOp.FLOOR_DIV: lambda left, right: left // right if _divides(left, right) else None,
    BinaryOp.FLOOR_MOD: lambda left, right: left % right if _divides(left, right) else None,
    BinaryOp.MAX: max,
    BinaryOp.POW: _power,
    BinaryOp.SHL: _shifted_left,
    BinaryOp.SHR: lambda left, right: left >> right if 0 <= right < 64 else None,
    BinaryOp.AND: lambda left, right: left & right,
    BinaryOp.OR: lambda left, right: left | right,
    BinaryOp.XOR: lambda left, right: left ^ right,
    BinaryOp.LT: lambda left, right: int(left < right),
    BinaryOp.LE: lambda left, right: int(left <= right),
    BinaryOp.EQ: lambda left, right: int(left == right),
    BinaryOp.NE: lambda left, right: int(left != right),
    BinaryOp.GT: lambda left, right: int(left > right),
    BinaryOp.GE: lambda left, right: int(left >= right),
}

_REJECTED_BINARY = {
    BinaryOp.FDIV: "its result is not an integer; use Idiv or FloorDiv",
    BinaryOp.THREEFRY: "a random number does not size a launch",
}


def _checked(value: int | None, message: str) -> int:
    if value is None or not INT64_MIN <= value <= INT64_MAX:
        raise CallBoundsError(message)
    return value


def binary(kind: BinaryOp, left: int, right: int) -> int:
    """`left kind right`, refusing overflow, division by zero and `MIN / -1`."""
    if kind not in _BINARY:
        raise CallBoundsError(f"unsupported binary op in launch-size expression: {kind} ({_REJECTED_BINARY[kind]})")
    return _checked(_BINARY[kind](left, right), f"invalid launch-size arithmetic: {left} {kind} {right}")


def unary(kind: UnaryOp, value: int) -> int:
    """`kind value`, refusing overflow and the operations that are not integer."""
    match kind:
        case UnaryOp.NEG:
            return _checked(-value, "invalid launch-size negation overflow")
        case UnaryOp.ABS:
            return _checked(abs(value), "invalid launch-size abs overflow")
        case UnaryOp.NOT:
            return ~value
        case UnaryOp.SIGN:
            return (value > 0) - (value < 0)
        case UnaryOp.SQUARE:
            return binary(BinaryOp.MUL, value, value)
        case UnaryOp.TRUNC | UnaryOp.FLOOR | UnaryOp.CEIL | UnaryOp.ROUND:
            return value
        case _:
            raise CallBoundsError(f"unsupported launch-size expression op: {kind} (its result is not an integer)")


def ternary(kind: TernaryOp, first: int, second: int, third: int) -> int:
    """MulAcc with both steps checked, or Where."""
    if kind is TernaryOp.WHERE:
        return second if first else third
    return binary(BinaryOp.ADD, binary(BinaryOp.MUL, first, second), third)
