"""Storage and side effects in sequence, random bits, tables, everything around one value."""

from __future__ import annotations

from math import prod

from tensorkiln.dtypes import DType
from tensorkiln.expr import mul

from .arithmetic import binop, repeated, reshape, unary, where
from .conversion import bitcast, cast
from .family import INTEGERS, VALUES
from .indexing import indices
from .memory import assigned, buffer_view, combined, declared_buffer, input_buffer
from .movement import moved
from .reduction import reduced
from .shapes import extent, shape
from .sketch import Sketch, literals
from .values import array


def uniform_random(sketch: Sketch, dtype: DType) -> None:
    """Threefry words to floats in [0, 1): shifted under the exponent of 1, reinterpreted, less 1."""
    counter = sketch.input(dtype, shape(sketch, limit=100))
    words = sketch.like("threefry", counter, ctr_var=counter, key_var=sketch.input(dtype, ()))
    low = cast(sketch, words, DType.UINT32)
    mantissa = binop(sketch, "shr", low, sketch.constant(DType.UINT32, 9))
    bits = binop(sketch, "or", mantissa, sketch.constant(DType.UINT32, 0x3F800000))
    sketch.output(binop(sketch, "sub", bitcast(sketch, bits, DType.FLOAT32), sketch.constant(DType.FLOAT32, 1.0)))


def embedding(sketch: Sketch, dtype: DType) -> None:
    """Rows of a table by gather and by index; both are zero for ids outside."""
    rows, width, count = sketch.integer(1, 9), sketch.integer(1, 5), extent(sketch, 12, sketch.symbolic)
    table, ids = sketch.input(dtype, (rows, width)), indices(sketch, (count,), rows)
    spread = repeated(sketch, ids, 1, width)
    gathered = sketch.add("gather", dtype, (count, width), src_var=table, indices_var=spread, axis=0)
    sketch.output(unary(sketch, "neg", gathered), reduced(sketch, "max", gathered, [0], keep=False))


def index_of_computed(sketch: Sketch, dtype: DType) -> None:
    """`dtype` is that of the index, which is computed too."""
    x = moved(sketch, sketch.input(DType.INT32, shape(sketch, limit=60)), most=2)
    ids = indices(sketch, shape(sketch, high_rank=2, limit=40), prod(sketch.shape(x)))
    ids = cast(sketch, ids, dtype)
    ids = binop(sketch, "add", ids, sketch.constant(dtype, 1))
    inside = binop(sketch, "cmplt", ids, sketch.constant(dtype, 9), sketch.pick([DType.BOOL, DType.UINT8]))
    gate = inside if sketch.flag() else None
    sketch.output(sketch.add("index", DType.INT32, sketch.dims(ids), in_var=x, idx_var=ids, valid_var=gate))


def counter_in_place(sketch: Sketch, dtype: DType) -> None:
    """A buffer updated twice from its own contents, with a view made before."""
    buffer = input_buffer(sketch, dtype, (extent(sketch, 20, sketch.symbolic),))
    view = buffer_view(sketch, buffer, dtype, (sketch.dims(buffer)[0],), 0)
    first = sketch.input(dtype, sketch.dims(buffer))
    assigned(sketch, buffer, combined(sketch, buffer, first))
    between = unary(sketch, "neg", buffer)
    assigned(sketch, buffer, unary(sketch, "neg", view))
    sketch.output(between, buffer, view)


def scratch_buffer(sketch: Sketch, dtype: DType) -> None:
    """Two computed values through one buffer, each read before the next is written."""
    x = sketch.input(dtype, shape(sketch, limit=80))
    buffer = declared_buffer(sketch, dtype, sketch.dims(x))
    assigned(sketch, buffer, unary(sketch, "neg", x))
    once = combined(sketch, buffer, x)
    assigned(sketch, buffer, once)
    sketch.output(once, unary(sketch, "neg", buffer))


def cache_update(sketch: Sketch, dtype: DType) -> None:
    """A row of an input is replaced by a computed one, then the whole is reduced."""
    rows, width = sketch.integer(1, 6), sketch.integer(1, 6)
    cache = sketch.input(dtype, (rows, width))
    row = unary(sketch, "neg", sketch.input(dtype, (width,)))
    place = sketch.integer(0, rows - 1)
    updates = [[row, cache, [place * width, (place + 1) * width]]]
    sketch.like("assign", cache, target_var=cache, updates=updates)
    sketch.output(reduced(sketch, "max", cache, [sketch.integer(0, 1)], keep=False), cache)


def bytes_of_a_buffer(sketch: Sketch, dtype: DType) -> None:
    """Computed into a declared buffer, read back as bytes."""
    x = sketch.input(dtype, (extent(sketch, 12, sketch.symbolic),))
    buffer = declared_buffer(sketch, dtype, sketch.dims(x))
    sketch.write({"node": "unary", "op": "neg", "in_var": x, "out_var": buffer, "dtype": dtype})
    size = mul(sketch.dims(x)[0], dtype.itemsize)
    raw = buffer_view(sketch, buffer, DType.UINT8, (size,), 0)
    sketch.output(raw if not dtype.is_float else combined(sketch, buffer, buffer))


def table_lookup(sketch: Sketch, dtype: DType) -> None:
    """A small constant table, compared and selected from."""
    contents = array(sketch.rng, dtype, (sketch.integer(1, 6),))
    table = sketch.add("vconst", dtype, contents.shape, values=literals(contents))
    rows = extent(sketch, 9, sketch.symbolic)
    spread = repeated(sketch, table, 0, rows)
    x = sketch.input(dtype, sketch.dims(spread))
    smaller = binop(sketch, "cmplt", x, spread, DType.BOOL)
    sketch.output(where(sketch, smaller, x, spread), reduced(sketch, "sum", smaller, [1], keep=False))


def hints_everywhere(sketch: Sketch, dtype: DType) -> None:
    """Identities between every two steps change nothing."""
    x = sketch.input(dtype, shape(sketch, limit=60))
    for _ in range(sketch.integer(1, 5)):
        kind = sketch.pick(_HINTS)
        x = moved(sketch, sketch.like(kind, x, in_var=x), most=1)
    sketch.output(unary(sketch, "neg", x), reshape(sketch, x, sketch.dims(x)))


_HINTS = ("contiguous", "contiguous_backward", "detach", "fuse", "noop")

NETWORKS = {
    "uniform_random": ((DType.UINT64,), uniform_random),
    "embedding": (VALUES, embedding),
    "index_of_computed": (INTEGERS, index_of_computed),
    "counter_in_place": (VALUES, counter_in_place),
    "scratch_buffer": (VALUES, scratch_buffer),
    "cache_update": (VALUES, cache_update),
    "bytes_of_a_buffer": (VALUES, bytes_of_a_buffer),
    "table_lookup": (VALUES, table_lookup),
    "hints_everywhere": (VALUES, hints_everywhere),
}
