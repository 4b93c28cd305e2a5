"""The value of a launch size under a binding of its variables."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import CallBoundsError
from ..expr import INT64_MAX, INT64_MIN
from .arithmetic import binary, ternary, unary
from .nodes import After, Binary, Bind, BitCast, Cast, Const, DefineVar, LaunchNode, Ternary, Unary

USIZE_MAX = 2 * sys.maxsize + 1


@dataclass(frozen=True, slots=True)
class LaunchDims:
    """Grid in work-groups and threads per work-group; `local_size` None means direct global ids."""

    global_size: tuple[int, int, int]
    local_size: tuple[int, int, int] | None


def evaluate_launch(expr: LaunchNode, values: Mapping[str, int]) -> int:
    """The value of `expr`; extra names in `values` are ignored.

    CallBoundsError when a variable is missing or out of bounds, an operation overflows or divides by zero, or an
    operation is not one of a launch size.
    """
    return _evaluate(expr, values, {})


def _evaluate(expr: LaunchNode, values: Mapping[str, int], known: dict[int, int]) -> int:
    # Memoized, because expressions share subtrees: a chain of n squares of sums would take 2^n steps.
    if id(expr) not in known:
        known[id(expr)] = _evaluate_once(expr, values, known)
    return known[id(expr)]


def _evaluate_once(expr: LaunchNode, values: Mapping[str, int], known: dict[int, int]) -> int:
    match expr:
        case Const(value):
            return _constant(value)
        case DefineVar(name, min_val, max_val):
            if name not in values:
                raise CallBoundsError(f"missing runtime value for launch-size variable {name}")
            return _within(name, values[name], min_val, max_val)
        case Bind(var, value):
            bound = _evaluate(value, values, known)
            return _within(var.name, bound, var.min_val, var.max_val) if isinstance(var, DefineVar) else bound
        case Binary(kind, left, right):
            return binary(kind, _evaluate(left, values, known), _evaluate(right, values, known))
        case Unary(kind, source):
            return unary(kind, _evaluate(source, values, known))
        case Ternary(kind, first, second, third):
            operands = [_evaluate(operand, values, known) for operand in (first, second, third)]
            return ternary(kind, *operands)
        case Cast(source) | BitCast(source) | After(source):
            return _evaluate(source, values, known)
        case _:
            raise CallBoundsError(f"unsupported launch-size expression op: {expr.op}")


def _constant(value: bool | int | float) -> int:
    if isinstance(value, float):
        raise CallBoundsError(
            f"launch-size expression must be integer, got float constant {repr(value).removesuffix('.0')}"
        )
    if not INT64_MIN <= value <= INT64_MAX:
        raise CallBoundsError(f"launch-size constant {value} does not fit i64")
    return int(value)


def _within(name: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise CallBoundsError(f"symbol {name}={value} is outside bounds [{least}, {most}]")
    return value


def _resolve(size: Sequence[LaunchNode], values: Mapping[str, int], usize_max: int) -> tuple[int, int, int]:
    dims = [1, 1, 1]
    for index, expr in enumerate(size):
        value = evaluate_launch(expr, values)
        if value <= 0:
            raise CallBoundsError(f"launch dimension {index} evaluated to non-positive value {value}")
        if value > usize_max:
            raise CallBoundsError(f"launch dimension {index} value {value} does not fit usize")
        dims[index] = value
    return dims[0], dims[1], dims[2]


def resolve_launch_dims(
    global_size: Sequence[LaunchNode],
    local_size: Sequence[LaunchNode] | None,
    values: Mapping[str, int],
    *,
    usize_max: int = USIZE_MAX,
) -> LaunchDims:
    """Evaluate both sizes, global before local, x before y before z, and report the first failure.

    `usize_max` is the largest dimension on the launching machine. CallBoundsError as for `evaluate_launch`, and when a
    dimension is not positive or above `usize_max`.
    """
    grid = _resolve(global_size, values, usize_max)
    return LaunchDims(grid, None if local_size is None else _resolve(local_size, values, usize_max))
