"""Shapes: rank 0 to 4, axes of size 0 and 1, long axes, and in symbolic cases expressions over up to two symbols."""

from __future__ import annotations

from hypothesis import strategies as st

from tensorkiln.expr import Dim, Expr, floordiv, maximum, mul, symbol

from .sketch import Sketch

LIMIT = 300
_EXTENTS = (1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 65, 130)


def shape(sketch: Sketch, low_rank: int = 0, high_rank: int = 4, limit: int = LIMIT) -> tuple[Dim, ...]:
    """A shape of at most `limit` elements; in a symbolic case one axis at least is an expression, if there is any."""
    rank = sketch.integer(max(low_rank, 1) if sketch.symbolic else low_rank, high_rank)
    dims: list[Dim] = []
    left = limit
    for position in range(rank):
        must_be_symbolic = sketch.symbolic and position == 0
        dim = extent(sketch, left, must_be_symbolic)
        dims.append(dim)
        left //= max(sketch.value(dim), 1)
    order = sketch.draw(st.permutations(range(rank)))
    return tuple(dims[position] for position in order)


def extent(sketch: Sketch, limit: int = LIMIT, must_be_symbolic: bool = False) -> Dim:
    """One axis: rarely empty, in a symbolic case often an expression."""
    if must_be_symbolic or (sketch.symbolic and sketch.flag()):
        return symbolic_extent(sketch, limit)
    if sketch.integer(0, 19) == 7:
        return 0
    return sketch.pick([size for size in _EXTENTS if size <= max(limit, 1)])


def symbolic_extent(sketch: Sketch, limit: int = LIMIT) -> Dim:
    """An expression that is not a constant and whose value is at most `limit`."""
    name = _any_symbol(sketch, limit)
    plain = symbol(name)
    if sketch.symbols[name] > limit:
        return plain - (sketch.symbols[name] - sketch.integer(0, limit))
    forms = [
        plain,
        plain,
        plain,
        plain + 1,
        mul(2, plain),
        floordiv(plain + 1, 2),
        maximum(plain, 2),
        plain + plain + 3,
    ]
    fitting = [form for form in forms if isinstance(form, Expr) and sketch.value(form) <= limit]
    return sketch.pick(fitting or [plain])


def _any_symbol(sketch: Sketch, limit: int) -> str:
    if "n" in sketch.symbols and ("m" in sketch.symbols or sketch.flag()):
        return sketch.pick(sorted(set(sketch.symbols) & {"n", "m"}))
    name = "m" if "n" in sketch.symbols else "n"
    value = sketch.pick([size for size in (1, 2, 3, 5, 0, 6, 9, 17) if size <= max(limit, 1)])
    low = sketch.pick([low for low in (0, 1, value) if low <= value])
    sketch.declare(name, value, low, sketch.pick([value, value + 3, 64]))
    return name
