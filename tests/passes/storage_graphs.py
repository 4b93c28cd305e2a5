"""Random graphs that are about storage: values that die, are read again, lie in others, are assigned to, come back."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, add, mul, sub, symbol
from tests.numerics.cases.arithmetic import binop, over_last, repeated, reshape, unary
from tests.numerics.cases.conversion import bitcast, cast
from tests.numerics.cases.memory import assigned, buffer_view, declared_buffer
from tests.numerics.cases.movement import cat, expand_to, pad_by, shrink_to
from tests.numerics.cases.reduction import reduced
from tests.numerics.cases.sketch import Case, Sketch
from tests.numerics.cases.values import array

Step = Callable[[Sketch, list[int]], int]

DTYPES = (DType.FLOAT32, DType.FLOAT32, DType.INT32, DType.FLOAT16, DType.UINT8)


@st.composite
def storage_graphs(draw: st.DrawFn, *, symbolic: bool) -> Case:
    """Values of one shape and dtype, each step making one more of those before; some of them, or parts, come back.

    No float is ever a NaN, whose bits would be anyone's.
    """
    sketch = Sketch(draw, symbolic)
    dtype = sketch.pick(DTYPES)
    dims = _dims(sketch)
    values = [sketch.input(dtype, dims, "grid"), _input_buffer(sketch, dtype, dims)]
    for _ in range(sketch.integer(4, 14)):
        step = sketch.pick(STEPS)
        values.append(step(sketch, values))
    last = values[-3:]
    outputs = [values[-1], *(sketch.pick(last) for _ in range(sketch.integer(0, 3)))]
    for _ in range(sketch.integer(0, 2)):
        outputs.insert(sketch.integer(0, len(outputs)), sketch.pick(PARTS)(sketch, sketch.pick(last)))
    sketch.output(*outputs)
    return sketch.case()


def _input_buffer(sketch: Sketch, dtype: DType, dims: tuple[Dim, Dim]) -> int:
    var = declared_buffer(sketch, dtype, dims)
    sketch.adopt_input(var, array(sketch.rng, dtype, sketch.values(dims), "grid"))
    return var


def _dims(sketch: Sketch) -> tuple[Dim, Dim]:
    rows, columns = sketch.pick([(1, 1), (5, 8), (4, 16), (3, 33), (8, 8), (0, 4), (40, 2)])
    if not sketch.symbolic:
        return rows, columns
    sketch.declare("n", rows, min(rows, 1), 64)
    return symbol("n"), columns


def _earlier(sketch: Sketch, values: list[int]) -> int:
    """Mostly the latest value, so that others die."""
    return values[-1] if sketch.integer(0, 3) else sketch.pick(values)


def _negated(sketch: Sketch, values: list[int]) -> int:
    return unary(sketch, "neg", _earlier(sketch, values))


def _combined(sketch: Sketch, values: list[int]) -> int:
    return binop(sketch, sketch.pick(["max", "min"]), _earlier(sketch, values), sketch.pick(values))


def _against_its_rows(sketch: Sketch, values: list[int]) -> int:
    x = _earlier(sketch, values)
    return unary(sketch, "neg", binop(sketch, sketch.pick(["min", "max"]), over_last(sketch, "max", x), x))


def _against_its_columns(sketch: Sketch, values: list[int]) -> int:
    x = _earlier(sketch, values)
    most = expand_to(sketch, reduced(sketch, "max", x, [0], keep=True), sketch.dims(x))
    return unary(sketch, "neg", binop(sketch, sketch.pick(["min", "max"]), x, most))


def _stored(sketch: Sketch, values: list[int]) -> int:
    x = _negated(sketch, values) if sketch.flag() else _earlier(sketch, values)
    return sketch.like("contiguous", x, in_var=x)


def _against_its_mirror(sketch: Sketch, values: list[int]) -> int:
    """Each element is read at its place and at another."""
    x = _earlier(sketch, values)
    flipped = sketch.like("flip", x, in_var=x, axes=[sketch.integer(0, 1)])
    return binop(sketch, "max", x, flipped)


def _against_its_neighbours(sketch: Sketch, values: list[int]) -> int:
    """The row before, zero for the first."""
    x = _earlier(sketch, values)
    rows, columns = sketch.dims(x)
    padded = pad_by(sketch, x, [(1, 0), (0, 0)])
    return binop(sketch, "max", shrink_to(sketch, padded, [(0, rows), (0, columns)]), x)


def _regrouped(sketch: Sketch, values: list[int]) -> int:
    x = _earlier(sketch, values)
    flat = reshape(sketch, x, (mul(*sketch.dims(x)),))
    if sketch.flag():
        flat = sketch.like("contiguous", flat, in_var=flat)
    return reshape(sketch, unary(sketch, "neg", flat) if sketch.flag() else flat, sketch.dims(x))


def _converted(sketch: Sketch, values: list[int]) -> int:
    """There and back, through another type of the same size or of another."""
    x = _earlier(sketch, values)
    other = sketch.pick([DType.INT32, DType.UINT32, DType.INT16, DType.INT8, DType.FLOAT64])
    there = cast(sketch, x, other)
    there = sketch.like("contiguous", there, in_var=there)
    return cast(sketch, binop(sketch, "max", there, there), sketch.dtype(x))


def _as_bits(sketch: Sketch, values: list[int]) -> int:
    x = _earlier(sketch, values)
    whole = {1: DType.INT8, 2: DType.UINT16, 4: DType.UINT32}[sketch.dtype(x).itemsize]
    bits = bitcast(sketch, x, sketch.pick([whole, DType.UINT8]))
    bits = sketch.like("contiguous", bits, in_var=bits)
    return bitcast(sketch, bits, sketch.dtype(x))


def _assigned(sketch: Sketch, values: list[int]) -> int:
    """All of an earlier value, or some of it, replaced: what the earlier var means from then on changes too."""
    target, source = sketch.pick(values), _earlier(sketch, values)
    size = sketch.value(mul(*sketch.dims(target)))
    if sketch.flag() or not size:
        return assigned(sketch, target, source)
    begin = 0 if sketch.symbolic else sketch.integer(0, size - 1)
    end = 0 if sketch.symbolic else sketch.integer(begin, size)
    part = sketch.input(sketch.dtype(target), (end - begin,), "grid")
    return sketch.like("assign", target, target_var=target, updates=[[part, target, [begin, end]]])


def _through_a_view(sketch: Sketch, values: list[int]) -> int:
    """Some leading rows of a buffer are replaced through a view of it, or through a view of a view."""
    x = _earlier(sketch, values)
    rows, columns = sketch.dims(x)
    buffer = declared_buffer(sketch, sketch.dtype(x), (rows, columns))
    assigned(sketch, buffer, x)
    if not sketch.value(mul(rows, columns)):
        return buffer
    first = sketch.integer(0, sketch.value(rows) - 1)
    first = 0 if sketch.symbolic else first
    rest = sub(rows, first)
    view = buffer_view(sketch, buffer, sketch.dtype(x), (mul(rest, columns),), mul(first, columns))
    if sketch.flag():
        view = buffer_view(sketch, view, sketch.dtype(x), (columns,), 0)
    assigned(sketch, view, unary(sketch, "neg", view))
    return buffer


def _to_a_destination(sketch: Sketch, values: list[int]) -> int:
    """A buffer that is declared, and viewed, before a node puts its result there."""
    x, y = _earlier(sketch, values), sketch.pick(values)
    var = declared_buffer(sketch, sketch.dtype(x), sketch.dims(x))
    sketch.write({"node": "binop", "op": "max", "a_var": x, "b_var": y, "out_var": var, "dtype": sketch.dtype(x)})
    return var


def _assembled(sketch: Sketch, values: list[int]) -> int:
    """Some values joined, most of which need a kernel of their own, then some rows of all."""
    x = _earlier(sketch, values)
    rows, columns = sketch.dims(x)
    parts = [_column_maxima(sketch, [*values, x]) for _ in range(sketch.integer(1, 2))]
    parts.insert(sketch.integer(0, len(parts)), sketch.pick(values))
    if sketch.flag():
        parts.append(sketch.like("contiguous", x, in_var=unary(sketch, "neg", x)))
    joined = cat(sketch, parts, 0)
    if sketch.flag():
        joined = unary(sketch, "neg", joined)
    if sketch.flag():
        joined = sketch.like("contiguous", joined, in_var=joined)
    start = sketch.pick([0, rows]) if sketch.symbolic else sketch.integer(0, sketch.value(rows))
    return shrink_to(sketch, joined, [(start, add(start, rows)), (0, columns)])


def _column_maxima(sketch: Sketch, values: list[int]) -> int:
    """As many rows as a value has, by a reduction that is a kernel of its own."""
    spread = repeated(sketch, sketch.pick(values), 0, 3)
    most = reduced(sketch, "max", spread, [0], keep=False)
    return most if sketch.flag() else sketch.like("contiguous", most, in_var=most)


def _with_a_part_replaced(sketch: Sketch, values: list[int]) -> int:
    """Rows of a stored value replaced by a reduction, through a view or by an assignment to a range."""
    x = _earlier(sketch, values)
    rows, columns = sketch.dims(x)
    base = _column_maxima(sketch, values) if sketch.flag() else _stored(sketch, values)
    buffer = declared_buffer(sketch, sketch.dtype(x), (rows, columns))
    assigned(sketch, buffer, base)
    last = 0 if sketch.symbolic or not sketch.value(rows) else sketch.integer(0, sketch.value(rows) - 1)
    part = reduced(sketch, "max", repeated(sketch, x, 0, 2), [0], keep=False)
    part = reshape(sketch, shrink_to(sketch, part, [(last, rows), (0, columns)]), (mul(sub(rows, last), columns),))
    if sketch.flag():
        part = reduced(sketch, "max", repeated(sketch, part, 0, 2), [0], keep=False)
    if sketch.symbolic or sketch.flag():
        view = buffer_view(sketch, buffer, sketch.dtype(x), sketch.dims(part), mul(last, columns))
        assigned(sketch, view, part)
    else:
        first, end = last * sketch.value(columns), sketch.value(mul(rows, columns))
        updates = [[part, buffer, [first, end]]]
        sketch.like("assign", buffer, target_var=buffer, updates=updates)
    return buffer


def _sorted(sketch: Sketch, values: list[int]) -> int:
    """Through a callback."""
    x = _earlier(sketch, values)
    flat = reshape(sketch, x, (mul(*sketch.dims(x)),))
    attributes = [{"name": "axis", "kind": "int", "value": 0}]
    ordered = sketch.like("custom", flat, op_name="sort", in_vars=[flat], attributes=attributes)
    return reshape(sketch, ordered, sketch.dims(x))


def _copied(sketch: Sketch, values: list[int]) -> int:
    x = _earlier(sketch, values)
    return sketch.like("copy", x, in_var=x, target_device="CPU", clone=sketch.flag())


STEPS: tuple[Step, ...] = (
    _negated,
    _combined,
    _combined,
    _against_its_rows,
    _against_its_columns,
    _against_its_columns,
    _against_its_columns,
    _stored,
    _stored,
    _against_its_mirror,
    _against_its_neighbours,
    _regrouped,
    _converted,
    _as_bits,
    _assigned,
    _through_a_view,
    _to_a_destination,
    _assembled,
    _assembled,
    _with_a_part_replaced,
    _with_a_part_replaced,
    _sorted,
    _copied,
)


def _whole(sketch: Sketch, x: int) -> int:
    return reshape(sketch, x, (1, mul(*sketch.dims(x))))


def _first_rows(sketch: Sketch, x: int) -> int:
    rows, columns = sketch.dims(x)
    last = 0 if sketch.symbolic else sketch.integer(0, sketch.value(rows))
    return shrink_to(sketch, x, [(last, rows), (0, columns)])


def _some_columns(sketch: Sketch, x: int) -> int:
    rows, columns = sketch.dims(x)
    return shrink_to(sketch, x, [(0, rows), (0, sketch.integer(0, sketch.value(columns)))])


def _bytes(sketch: Sketch, x: int) -> int:
    return bitcast(sketch, x, DType.UINT8)


def _viewed(sketch: Sketch, x: int) -> int:
    return buffer_view(sketch, x, sketch.dtype(x), (mul(*sketch.dims(x)),), 0)


PARTS: tuple[Callable[[Sketch, int], int], ...] = (_whole, _first_rows, _some_columns, _bytes, _viewed)
