"""Results larger than the cache, stored past it.

A vector that is stored in the usual way is first read from memory, with its whole cache line. A store past the cache
needs an address that is a multiple of the vector. Whether that holds, and whether the result is large enough, may be
known only at the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from dialect.mlir import arith, func, ir, memref, vector
from passes.emit.index_emission import IndexEmitter
from passes.loops.body import KernelBody, Stage
from passes.loops.index_space import linear_form
from tensorkiln import expr
from tensorkiln.expr import Dim, free_symbols

from .frame import Frame
from .machine import Machine
from .shared_functions import declare, module_of

FENCE: Final = "llvm.x86.sse.sfence"
"""LLVM's name of the instruction that orders these stores before later ones (llvm/include/llvm/IR/IntrinsicsX86.td)."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """When results are stored past the cache: if all `strides` are multiples of `lanes`, and `size` is at least `least`
    bytes. What holds at every call is not listed.
    """

    strides: tuple[Dim, ...]
    lanes: int
    size: Dim
    least: int


def conditions(body: KernelBody, stage: Stage, machine: Machine) -> Conditions | None:
    """When the results of a map go past the cache; None if they never do.

    A target has the instruction if it has masked vectors.
    """
    form = linear_form(stage.domain.address, [loop.name for loop in stage.domain.loops])
    if not machine.vectors.masked_lanes or form is None or form[1][-1] != 1:
        return None
    roots = [entry.root for entry in stage.stores]
    lanes = max(machine.vectors.lanes(root.dtype) for root in roots)
    elements, cached, space = expr.product(roots[0].shape), machine.core.cached_bytes, body.space
    strides = [stride for stride in (*form[1][:-1], form[0], elements) if expr.floormod(stride, lanes) != 0]
    size = expr.mul(elements, sum(root.dtype.itemsize for root in roots))
    if space.largest(size) < cached or not all(isinstance(stride, expr.Expr) for stride in strides):
        return None
    if not all(free_symbols(stride) <= body.function.symbols.keys() for stride in strides):
        return None
    is_large = -space.largest(expr.neg(size)) >= cached
    return Conditions(tuple(strides), lanes, size, 0 if is_large else cached)


def emit_conditions(when: Conditions, stage: Stage, bases: Mapping[int, ir.Value], index: IndexEmitter) -> ir.Value:
    """Emit whether the results of the stage are stored past the cache, which is so for a whole call or not at all."""
    rests = [arith.remui(index(stride), index(when.lanes)) for stride in when.strides]
    for entry in stage.stores:
        place = memref.extract_aligned_pointer_as_index(bases[entry.operand])
        rests.append(arith.remui(place, index(when.lanes * entry.root.dtype.itemsize)))
    held = [arith.cmpi(arith.CmpIPredicate.eq, rest, index(0)) for rest in rests]
    if when.least:
        held.append(arith.cmpi(arith.CmpIPredicate.uge, index(when.size), index(when.least)))
    return reduce(arith.andi, held)


def store_past(value: ir.Value, view: ir.Value, places: Sequence[ir.Value], size: int) -> None:
    """Store a vector of `size` bytes past the cache; `fence` has to follow before the kernel ends."""
    vector.StoreOp(value, view, places, nontemporal=True, alignment=size)


def fence(frame: Frame) -> None:
    """Order the stores past the cache before those by which other threads see that the kernel has ended."""
    declare(module_of(frame.entry), FENCE, [])
    func.CallOp([], FENCE, [])
