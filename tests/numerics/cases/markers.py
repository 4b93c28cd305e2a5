"""Identities with a hint, noop, and what can be done with a value of unit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorkiln.dtypes import DType

from .family import STORED, Family
from .memory import combined
from .movement import moved
from .shapes import shape
from .sketch import Sketch
from .views import Strided, tracker

ANY = (*STORED, DType.UNIT)
_MASK = tracker([Strided((4,), (1,), 0, ((1, 3),))])


def mask_of_unit(sketch: Sketch, unit: int) -> int:
    """The one use of a unit value that can be an output."""
    return sketch.add("valid", DType.BOOL, (4,), in_var=unit, shape_tracker=_MASK)


def identity(kind: str, field: str = "in_var", **fields: Any) -> Callable[[Sketch, DType, str], None]:
    def draw(sketch: Sketch, dtype: DType, _op: str) -> None:
        if dtype is DType.UNIT:
            unit = sketch.add("const_scalar", dtype, (), value=None)
            sketch.output(mask_of_unit(sketch, sketch.like(kind, unit, **{field: unit}, **fields)))
            return
        x = moved(sketch, sketch.input(dtype, shape(sketch, limit=60)), most=1)
        same = sketch.like(kind, x, **{field: x}, **fields)
        sketch.output(same, combined(sketch, same, x))

    return draw


def draw_noop(sketch: Sketch, dtype: DType, op: str) -> None:
    if sketch.flag():
        identity("noop")(sketch, dtype, op)
        return
    dims = shape(sketch, high_rank=2)
    zero = sketch.add("noop", dtype, dims, must_state=bool(dims), in_var=None)
    sketch.output(mask_of_unit(sketch, zero) if dtype is DType.UNIT else zero)


FAMILIES = {
    "detach": Family(ANY, identity("detach")),
    "contiguous_backward": Family(ANY, identity("contiguous_backward")),
    "fuse": Family(ANY, identity("fuse")),
    "unroll": Family(ANY, identity("unroll", "loop_var", unroll_factor=4)),
    "noop": Family(ANY, draw_noop),
}
