"""Buffers, views of their bytes, inputs, copies and assignments. Nothing reads what was never written."""

from __future__ import annotations

from math import prod
from typing import Any

from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, mul, sub

from .conversion import is_whole
from .family import STORED, Family
from .shapes import shape
from .sketch import Dims, Sketch, wire
from .values import array


def input_buffer(sketch: Sketch, dtype: DType, dims: Dims) -> int:
    """A buffer that is an input; of any rank but 1 its shape stands in the metadata."""
    var = declared_buffer(sketch, dtype, dims)
    sketch.adopt_input(var, array(sketch.rng, dtype, sketch.values(dims)))
    return var


def declared_buffer(sketch: Sketch, dtype: DType, dims: Dims) -> int:
    size = wire([mul(1, *dims)])[0]
    device = sketch.pick(["CPU", "cpu"])
    return sketch.add("buffer", dtype, dims, must_state=len(dims) != 1, size_in_elements=size, device=device)


def assigned(sketch: Sketch, target: int, *sources: int) -> int:
    """`target[...] = source` for each; the var of the new value."""
    return sketch.like("assign", target, target_var=target, updates=[[source, target, None] for source in sources])


def combined(sketch: Sketch, a: int, b: int) -> int:
    """A use of a value that keeps its type, of any dtype."""
    return sketch.like(**_combination(sketch, a, b), var=a)


def _combination(sketch: Sketch, a: int, b: int) -> dict[str, Any]:
    """The greater of two; of a narrow dtype, which is not compared, the first where it is not zero."""
    if not sketch.dtype(a).is_narrow:
        return {"node": "binop", "op": "max", "a_var": a, "b_var": b}
    condition = sketch.add("cast", DType.BOOL, sketch.dims(a), in_var=a, target_dtype=DType.BOOL)
    return {"node": "ternary", "op": "where", "a_var": condition, "b_var": a, "c_var": b}


def draw_buffer(sketch: Sketch, dtype: DType, _op: str) -> None:
    sketch.pick([_draw_destination, _draw_input_buffer, _draw_written_buffer])(sketch, dtype)


def _draw_destination(sketch: Sketch, dtype: DType) -> None:
    """The buffer is declared first and the result goes there: two nodes with one out var."""
    x = sketch.input(dtype, shape(sketch))
    y = sketch.input(dtype, sketch.dims(x))
    combination = _combination(sketch, x, y)
    var = declared_buffer(sketch, dtype, sketch.dims(x))
    sketch.write({**combination, "out_var": var, "dtype": dtype})
    sketch.output(var, combined(sketch, var, x))


def _draw_input_buffer(sketch: Sketch, dtype: DType) -> None:
    x = input_buffer(sketch, dtype, shape(sketch))
    sketch.output(combined(sketch, x, x), x)


def _draw_written_buffer(sketch: Sketch, dtype: DType) -> None:
    x = sketch.input(dtype, shape(sketch))
    buffer = declared_buffer(sketch, dtype, sketch.dims(x))
    if sketch.flag():
        value = assigned(sketch, buffer, x)
        sketch.output(sketch.pick([buffer, value]))
        return
    updates = [[x, buffer, None]]
    sketch.write({"node": "assign", "target_var": buffer, "updates": updates, "out_var": buffer, "dtype": dtype})
    sketch.output(buffer, combined(sketch, buffer, x))


def draw_buffer_view(sketch: Sketch, dtype: DType, _op: str) -> None:
    """`dtype` is the buffer's; the view's is any. Sometimes the buffer is written after the view was made."""
    buffer = input_buffer(sketch, dtype, shape(sketch, low_rank=1, high_rank=2, limit=80))
    target = sketch.pick([target for target in STORED if is_whole(dtype, target)])
    offset, size = _symbolic_part(sketch, buffer) if sketch.symbolic else _part(sketch, buffer, dtype, target)
    target = dtype if sketch.symbolic else target
    dims = (size,) if sketch.flag() else (1, size)
    view = buffer_view(sketch, buffer, target, dims, offset)
    if sketch.flag():
        assigned(sketch, buffer, sketch.input(dtype, sketch.dims(buffer)))
    sketch.output(view, combined(sketch, view, view))


def buffer_view(sketch: Sketch, buffer: int, dtype: DType, dims: Dims, offset: Dim) -> int:
    fields = {"buffer_var": buffer, "size": wire([mul(1, *dims)])[0], "offset": wire([offset])[0]}
    return sketch.add("buffer_view", dtype, dims, must_state=len(dims) != 1, **fields)


def _part(sketch: Sketch, buffer: int, dtype: DType, target: DType) -> tuple[Dim, Dim]:
    count = prod(sketch.shape(buffer))
    offset = sketch.integer(0, count)
    room = (count - offset) * dtype.itemsize // target.itemsize
    return offset, sketch.pick([room, sketch.integer(0, room)])


def _symbolic_part(sketch: Sketch, buffer: int) -> tuple[Dim, Dim]:
    count = mul(1, *sketch.dims(buffer))
    offset = sketch.integer(0, min(2, sketch.value(count)))
    return offset, sub(count, offset)


def draw_placeholder(sketch: Sketch, dtype: DType, _op: str) -> None:
    """Inputs that are outputs, once or twice; and one that nobody reads."""
    x, y = sketch.input(dtype, shape(sketch)), sketch.input(dtype, shape(sketch))
    sketch.input(sketch.pick(STORED), (2,))
    sketch.output(*sketch.pick([(x,), (x, y), (y, x, y), (combined(sketch, x, x), x)]))


def draw_copy(sketch: Sketch, dtype: DType, _op: str) -> None:
    x = sketch.input(dtype, shape(sketch))
    copied = sketch.like("copy", x, in_var=x, target_device=sketch.pick(["CPU", "cpu"]), clone=sketch.flag())
    sketch.output(copied, combined(sketch, copied, x))


def draw_contiguous(sketch: Sketch, dtype: DType, _op: str) -> None:
    x = sketch.input(dtype, shape(sketch))
    flipped = sketch.like("flip", x, in_var=x, axes=list(range(len(sketch.dims(x)))))
    stored = sketch.like("contiguous", flipped, in_var=flipped)
    sketch.output(stored, combined(sketch, stored, x))


def draw_assign(sketch: Sketch, dtype: DType, _op: str) -> None:
    dims = shape(sketch)
    target = sketch.pick([input_buffer, Sketch.input])(sketch, dtype, dims)
    before = combined(sketch, target, target)
    if sketch.flag():
        first = last = assigned(sketch, target, *(sketch.input(dtype, dims) for _ in range(sketch.integer(1, 2))))
    else:
        first = last = _assigned_ranges(sketch, target)
    if sketch.flag():
        last = assigned(sketch, target, _twice(sketch, target))
    seen = sketch.pick([(target,), (last,), (target, first, last)])
    sketch.output(before, *seen, combined(sketch, target, before))


def _twice(sketch: Sketch, target: int) -> int:
    """A source that is computed from the target."""
    return combined(sketch, target, sketch.input(sketch.dtype(target), sketch.dims(target)))


def _assigned_ranges(sketch: Sketch, target: int) -> int:
    size = prod(sketch.shape(target))
    updates: list[list[object]] = []
    for _ in range(sketch.integer(1, 3)):
        begin = sketch.integer(0, size)
        end = sketch.integer(begin, size)
        source = sketch.input(sketch.dtype(target), sketch.pick([(end - begin,), (1, end - begin)]))
        updates.append([source, target, [begin, end]])
    return sketch.like("assign", target, target_var=target, updates=updates)


FAMILIES = {
    "buffer": Family(STORED, draw_buffer),
    "buffer_view": Family(STORED, draw_buffer_view),
    "placeholder": Family(STORED, draw_placeholder),
    "copy": Family(STORED, draw_copy),
    "contiguous": Family(STORED, draw_contiguous),
    "assign": Family(STORED, draw_assign),
}
