"""The reads and stores of a map that a thread can do for several neighbouring elements at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dialect.mlir import ir, vector
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import strided_view
from passes.loops.accesses import linear_access, loads
from passes.loops.body import KernelBody
from passes.loops.index_space import linear_form
from passes.loops.scalar_dag import Apply, Load, walk
from passes.scalar.registers import from_memory, stored_type, to_memory
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim

from .machine import VECTOR_BYTES

MAX_OPERATIONS = 512
"""Most scalar operations of one thread: beyond that, more elements cost more registers than wider loads save."""


@dataclass(frozen=True, slots=True)
class VectorAccess:
    """`width` elements per thread along the last loop; vector reads by `id` of the load, vector stores by operand."""

    width: int
    loads: frozenset[int]
    stores: frozenset[int]


SCALAR = VectorAccess(1, frozenset(), frozenset())


def vector_access(body: KernelBody, width: int) -> VectorAccess:
    """The accesses of a thread with `width` elements, which the loops of `body` must allow."""
    found = _of_width(body, width) if width > 1 else SCALAR
    assert found is not None, "such a width was offered"
    return found


def widest_access(body: KernelBody) -> VectorAccess:
    """The widest access that the loops of `body`, shared by all its stages, allow."""
    operations = sum(isinstance(node, Apply) for stage in body.stages for node in walk(stage.elements, body.nodes))
    width = VECTOR_BYTES
    while width > 1:
        found = _of_width(body, width)
        if found is not None and operations * width <= MAX_OPERATIONS:
            return found
        width //= 2
    return SCALAR


def _of_width(body: KernelBody, width: int) -> VectorAccess | None:
    """The accesses of a thread with `width` elements; None if nothing is gained or the loops forbid it."""
    last = body.rows[-1]
    if len(body.rows) > 1 and not _divides(width, last.extent):
        return None
    read: set[int] = set()
    written: set[int] = set()
    sizes: set[int] = set()
    for stage in body.stages:
        names = [loop.name for loop in stage.domain.loops]
        for load in loads(stage.elements, body.nodes):
            access = None if load.conditions else linear_access(load, body.nodes, names)
            if access is not None and _is_contiguous(access.offset, access.strides, width):
                read.add(id(load))
                sizes.add(load.dtype.itemsize)
        form = linear_form(stage.domain.address, names)
        if form is not None and _is_contiguous(*form, width):
            kept = [entry for entry in stage.stores if not body.is_local(entry.operand)]
            written |= {entry.operand for entry in kept}
            sizes |= {entry.root.dtype.itemsize for entry in kept}
    if not sizes or max(sizes) * width > VECTOR_BYTES:
        return None
    return VectorAccess(width, frozenset(read), frozenset(written))


def _is_contiguous(offset: Dim, strides: Sequence[Dim], width: int) -> bool:
    """Whether the last loop steps through single elements and everything else through whole vectors."""
    if not strides or strides[-1] != 1:
        return False
    return all(_divides(width, part) for part in (offset, *strides[:-1]))


def _divides(width: int, dim: Dim) -> bool:
    return expr.floormod(dim, width) == 0


def load_vector(load: Load, base: ir.Value, width: int, index: IndexEmitter) -> list[ir.Value]:
    """The elements, in their register type, that `load` reads at the point of `index` and those after it."""
    view = strided_view(base, load.address, (width,), (1,), index)
    kind = ir.VectorType.get([width], stored_type(load.dtype))
    read = vector.load(kind, view, [index(0)], alignment=width * load.dtype.itemsize)
    return [from_memory(load.dtype, vector.extract(read, [], [lane])) for lane in range(width)]


def store_vector(dtype: DType, values: Sequence[ir.Value], base: ir.Value, address: Dim, index: IndexEmitter) -> None:
    """Store the elements, in their register type, at the address of the point of `index` and after it."""
    view = strided_view(base, address, (len(values),), (1,), index)
    kind = ir.VectorType.get([len(values)], stored_type(dtype))
    packed = vector.from_elements(kind, [to_memory(dtype, value) for value in values])
    vector.store(packed, view, [index(0)], alignment=len(values) * dtype.itemsize)
