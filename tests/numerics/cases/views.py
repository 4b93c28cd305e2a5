"""View and valid: random strided views, stacked up to three deep, and symbolic ones by pattern."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, add, mul, neg, sub

from .family import STORED, Family
from .shapes import shape, symbolic_extent
from .sketch import Sketch, wire


@dataclass(frozen=True, slots=True)
class Strided:
    """One view of a shape tracker."""

    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    offset: Dim = 0
    mask: tuple[tuple[Dim, Dim], ...] | None = None

    def as_wire(self) -> dict[str, Any]:
        mask = None if self.mask is None else [wire(pair) for pair in self.mask]
        return {
            "shape": wire(self.shape),
            "strides": wire(self.strides),
            "offset": wire([self.offset])[0],
            "mask": mask,
        }


def tracker(views: Sequence[Strided]) -> dict[str, Any]:
    return {"views": [view.as_wire() for view in views], "shape": wire(views[-1].shape)}


def add_view(sketch: Sketch, x: int, views: Sequence[Strided]) -> int:
    return sketch.add("view", sketch.dtype(x), views[-1].shape, in_var=x, shape_tracker=tracker(views))


def random_views(sketch: Sketch) -> tuple[list[Strided], int]:
    """Static views, base-most first, and how many elements of storage the base-most needs."""
    last, size = _random_view(sketch, _sizes(shape(sketch)))
    views = [last]
    for _ in range(sketch.integer(0, 2)):
        below, size = _random_view(sketch, _holding(sketch, size))
        views.insert(0, below)
    return views, size


def _sizes(dims: Sequence[Dim]) -> tuple[int, ...]:
    return tuple(dim for dim in dims if isinstance(dim, int))


def _holding(sketch: Sketch, size: int) -> tuple[int, ...]:
    """A shape with `size` elements or a few more."""
    rows = sketch.pick([1, 2, 3])
    columns = -(-size // rows)
    return sketch.pick([(rows, columns), (columns, rows), (rows * columns,), (size + sketch.integer(0, 2),)])


def _random_view(sketch: Sketch, sizes: tuple[int, ...]) -> tuple[Strided, int]:
    """A view of that shape over the least storage that holds every unmasked address, and that storage's size."""
    strides = tuple(_stride(sketch, sizes, axis) for axis in range(len(sizes)))
    mask = tuple(_mask(sketch, size) for size in sizes) if sketch.flag() else None
    boxes = mask or tuple((0, size) for size in sizes)
    if any(begin >= end for begin, end in boxes):
        return Strided(sizes, strides, sketch.integer(-5, 5), mask), sketch.integer(0, 4)
    ends = [(stride * begin, stride * (end - 1)) for stride, (begin, end) in zip(strides, boxes, strict=True)]
    least, greatest = sum(min(pair) for pair in ends), sum(max(pair) for pair in ends)
    lead = sketch.integer(0, 2)
    return Strided(sizes, strides, lead - least, mask), lead + greatest - least + 1 + sketch.integer(0, 2)


def _stride(sketch: Sketch, sizes: tuple[int, ...], axis: int) -> int:
    row_major = 1
    for size in sizes[axis + 1 :]:
        row_major *= max(size, 1)
    return sketch.pick([row_major, row_major, -row_major, 0, 1, sketch.integer(-3, 3)])


def _mask(sketch: Sketch, size: int) -> tuple[int, int]:
    begin = sketch.integer(0, size)
    return sketch.pick([(0, size), (begin, size), (0, begin), (min(begin, 1), max(size - 1, 0))])


def symbolic_views(sketch: Sketch) -> tuple[list[Strided], tuple[Dim, ...]]:
    """Views over expressions, base-most first, and the shape of the storage below."""
    n = symbolic_extent(sketch, 20)
    return sketch.pick(_PATTERNS)(sketch, n)


Pattern = Callable[[Sketch, Dim], tuple[list[Strided], tuple[Dim, ...]]]


def _transposed(sketch: Sketch, n: Dim) -> tuple[list[Strided], tuple[Dim, ...]]:
    rows = sketch.pick([1, 2, 5])
    return [Strided((n, rows), (1, n))], (rows, n)


def _reversed(_sketch: Sketch, n: Dim) -> tuple[list[Strided], tuple[Dim, ...]]:
    return [Strided((n,), (-1,), sub(n, 1))], (n,)


def _padded(sketch: Sketch, n: Dim) -> tuple[list[Strided], tuple[Dim, ...]]:
    before, after = sketch.integer(0, 3), sketch.integer(0, 3)
    return [_padding(n, before, after)], (n,)


def _padding(n: Dim, before: Dim, after: Dim) -> Strided:
    return Strided((add(before, n, after),), (1,), neg(before), ((before, add(before, n)),))


def _windows(sketch: Sketch, n: Dim) -> tuple[list[Strided], tuple[Dim, ...]]:
    width = sketch.integer(1, 4)
    return [Strided((n, width), (1, 1))], (add(n, width - 1),)


def _every_second(_sketch: Sketch, n: Dim) -> tuple[list[Strided], tuple[Dim, ...]]:
    return [Strided((n,), (2,), 1)], (mul(2, n),)


def _repeated(sketch: Sketch, n: Dim) -> tuple[list[Strided], tuple[Dim, ...]]:
    return [Strided((sketch.pick([1, 3]), n, 2), (0, 1, 0))], (n,)


def _padded_then_reversed(sketch: Sketch, n: Dim) -> tuple[list[Strided], tuple[Dim, ...]]:
    padding = _padding(n, sketch.integer(0, 2), sketch.integer(0, 2))
    return [padding, Strided(padding.shape, (-1,), sub(padding.shape[0], 1))], (n,)


_PATTERNS: list[Pattern] = [
    _transposed,
    _reversed,
    _padded,
    _windows,
    _every_second,
    _repeated,
    _padded_then_reversed,
]


def viewed(sketch: Sketch, dtype: DType) -> int:
    """A view of an input that is just large enough."""
    if sketch.symbolic:
        views, dims = symbolic_views(sketch)
        return add_view(sketch, sketch.input(dtype, dims), views)
    views, size = random_views(sketch)
    return add_view(sketch, sketch.input(dtype, sketch.pick([(size,), (1, size), (size, 1)])), views)


def draw_view(sketch: Sketch, dtype: DType, _op: str) -> None:
    sketch.output(viewed(sketch, dtype))


def draw_valid(sketch: Sketch, dtype: DType, _op: str) -> None:
    """Of a tensor; of bool also the mask itself, of a scalar or of unit."""
    views = symbolic_views(sketch)[0] if sketch.symbolic else random_views(sketch)[0]
    dims = views[-1].shape
    if dtype is DType.BOOL and sketch.flag():
        bare = sketch.pick([sketch.add("const_scalar", DType.UNIT, (), value=None), sketch.input(dtype, ())])
        sketch.output(sketch.add("valid", dtype, dims, in_var=bare, shape_tracker=tracker(views)))
        return
    x = sketch.input(dtype, dims)
    sketch.output(sketch.add("valid", dtype, dims, in_var=x, shape_tracker=tracker(views)))


FAMILIES = {"view": Family(STORED, draw_view), "valid": Family(STORED, draw_valid)}
