"""Bounds proofs for all loads and stores of realised kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dialect.mlir import ir
from passes.cpu.abi import BODY_SUFFIX
from tensorkiln import expr
from tensorkiln.expr import Atom, Dim, Expr
from tensorkiln.infer import Constraint

from .kernel_memory import KernelMemory, Realised
from .memory import Memory, View
from .polynomials import long_division
from .scope import Scope
from .walk import Access, Bounds, Walk


def accesses(realised: Realised, constraints: Iterable[Constraint] = (), *, loads: bool = True) -> list[Access]:
    """The loads and stores of a realised module's kernels; without `loads` only the stores.

    The graph's `constraints` are assumed, since a call that violates one runs no kernel.
    """
    known = [fact for constraint in constraints for fact in _facts(constraint)]
    functions = {
        ir.StringAttr(op.operation.attributes["sym_name"]).value: op.operation
        for op in realised.module.body.operations
        if op.operation.name == "func.func"
    }
    return [
        access
        for name, memory in realised.memories.items()
        for access in _accesses(functions.get(name + BODY_SUFFIX) or functions[name], functions, memory, known, loads)
    ]


def _facts(constraint: Constraint) -> list[Dim]:
    """The nonnegative facts that follow from a constraint."""
    difference = expr.sub(constraint.left, constraint.right)
    return [difference, expr.neg(difference)] if constraint.kind == "eq" else [difference]


def _accesses(
    function: Any, functions: Mapping[str, Any], memory: KernelMemory, known: Sequence[Dim], loads: bool
) -> list[Access]:
    ranges = memory.symbols
    extents = [part for _, shape in memory.buffers for part in _parts(shape)]
    known = [*known, *extents]
    some = Scope(ranges).where([*known, expr.sub(memory.groups, 1), *_positive(extents, memory.axes)])
    found = _in_scope(function, functions, memory, some, memory.groups, loads)
    none = _without_rows(Scope(ranges).where(known), extents, _rounded_up(memory.groups))
    if not memory.threads and not expr.is_nonnegative(expr.sub(memory.groups, 1), none.ranges):
        # A kernel without rows is launched with one work-group, in which no loop runs.
        found += _in_scope(function, functions, memory, none, 1, loads)
    return found


def _parts(shape: Sequence[Dim]) -> list[Dim]:
    """The dims of a shape and the products of its trailing dims: the possible extents of loops, all nonnegative."""
    last = [expr.product(shape[place:]) for place in range(len(shape))]
    return [dim for dim in dict.fromkeys((*shape, *last)) if isinstance(dim, Expr)]


def _positive(extents: Sequence[Dim], axes: Sequence[Dim]) -> list[Dim]:
    """`dim - 1` for each axis and each extent that divides one: if no axis is empty, all are at least 1."""
    axes = [_rounded_up(axis) for axis in axes]
    divide = [extent for extent in extents if any(long_division(axis, extent)[1] == 0 for axis in axes)]
    return [expr.sub(dim, 1) for dim in (*axes, *divide)]


def _without_rows(scope: Scope, extents: Sequence[Dim], rows: Dim) -> Scope:
    """The scope in which `rows` is 0; so is each extent of which `rows` is a positive multiple."""
    divided = [(extent, *long_division(rows, extent)) for extent in extents]
    zero = [
        extent for extent, times, rest in divided if rest == 0 and expr.is_nonnegative(expr.sub(times, 1), scope.ranges)
    ]
    return scope.where([expr.neg(dim) for dim in (rows, *zero)])


def _rounded_up(dim: Dim) -> Dim:
    """If `dim` is `a` divided by a constant and rounded up, return `a`, which is positive if and only if `dim` is."""
    terms = dim.terms if isinstance(dim, Expr) else ()
    match [monomial for monomial, _ in terms if any(atom.op == "floordiv" for atom in monomial)]:
        case [(Atom(op="floordiv", args=(dividend, int(divisor))) as quotient,)]:
            whole = expr.sub(dim, Expr((((quotient,), 1),)))
            return expr.sub(expr.add(dividend, expr.mul(divisor, whole)), divisor - 1)
        case _:
            return dim


def _in_scope(
    function: Any, functions: Mapping[str, Any], memory: KernelMemory, scope: Scope, groups: Dim, loads: bool
) -> list[Access]:
    first = _walk(function, functions, memory, scope, groups, {}, loads)
    accesses = first.proven()
    if all(access.is_proven for access in accesses):
        return accesses
    return _walk(function, functions, memory, scope, groups, _ranges(first, scope), loads).proven()


def _ranges(walk: Walk, scope: Scope) -> dict[str, Bounds]:
    """Bounds of all integers that the kernel stores, by the name of the buffer."""

    def is_above(bound: Dim, others: Sequence[Dim]) -> bool:
        return any(expr.is_nonnegative(expr.sub(bound, other), scope.ranges) for other in others)

    found: dict[str, Bounds] = {}
    for name, stored in walk.stored.items():
        lows = [low for below, _ in stored for low in below]
        highs = [high for _, above in stored for high in above]
        found[name] = (
            [low for low in lows if all(is_above(expr.neg(low), [expr.neg(o) for o in below]) for below, _ in stored)],
            [high for high in highs if all(is_above(high, above) for _, above in stored)],
        )
    return found


def _walk(
    function: Any,
    functions: Mapping[str, Any],
    memory: KernelMemory,
    scope: Scope,
    groups: Dim,
    ranges: Mapping[str, Bounds],
    loads: bool,
) -> Walk:
    walk = Walk(memory.kernel, functions, scope, ranges, memory.shared, loads=loads)
    block = function.regions[0].blocks[0]
    arguments = list(block.arguments)
    for argument, (name, shape) in zip(arguments, memory.buffers, strict=False):
        walk.bind_view(argument, View(Memory(name, expr.product(shape))))
    rest = arguments[len(memory.buffers) :]
    for argument, name in zip(rest, memory.symbols, strict=False):
        walk.integers.bind(argument, expr.symbol(name))
    if memory.threads:
        walk.bind_threads(memory.threads, groups)
    else:
        first, last = rest[len(memory.symbols) :]
        walk.integers.bind(first, begin := walk.facts.new([0], [groups]))
        walk.integers.bind(last, walk.facts.new([begin], [groups]))
    walk.block(block)
    return walk
