"""The scalar program of one element: the computation at one point of a kernel's loops, as a hash-consed graph.

Tracing builds it from kiln ops, schedules are chosen from it, and emission turns it into the body of a
`linalg.generic`. Equal nodes are one object, so common subexpressions are shared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar, cast

from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, Expr, free_symbols

T = TypeVar("T")

COMBINE: Final = "combine"
"""The op of a reduction's combination; its attribute is the kind."""


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A literal of `dtype`."""

    dtype: DType
    value: int | float | bool


@dataclass(frozen=True, slots=True, eq=False)
class IndexValue:
    """The value of an index expression, as an integer of `dtype`."""

    dtype: DType
    index: Dim


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """Element `address` of operand `operand`, or zero if a condition fails, in which case nothing is read.

    `index` is the same place by the dimensions of the operand; empty if the operand is flat memory.
    """

    dtype: DType
    operand: int
    address: Dim
    conditions: tuple[Condition, ...]
    index: tuple[Dim, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Apply:
    """A scalar operation. `op` names the function of the scalar lowering, `attributes` its compile-time arguments."""

    dtype: DType
    op: str
    attributes: tuple[object, ...]
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """`value` where every condition holds, zero elsewhere."""

    dtype: DType
    conditions: tuple[Condition, ...]
    value: Node


@dataclass(frozen=True, slots=True, eq=False)
class Choose:
    """`first` where every condition holds, `second` elsewhere."""

    dtype: DType
    conditions: tuple[Condition, ...]
    first: Node
    second: Node


@dataclass(frozen=True, slots=True, eq=False)
class InRange:
    """A condition read from data: whether the integer `value` lies in `0 .. extent - 1`."""

    value: Node
    extent: Dim


@dataclass(frozen=True, slots=True, eq=False)
class IsTrue:
    """A condition read from data: whether the bool `value` is set."""

    value: Node


Condition: TypeAlias = "Dim | InRange | IsTrue"
"""A dim stands for the condition that it is nonnegative."""
Node: TypeAlias = "Constant | IndexValue | Load | Apply | Guard | Choose"


@dataclass(slots=True)
class Interner:
    """Makes nodes so that equal ones are the same object, and names run-time indices after their node.

    To record the origins of nodes, `mark` is added to `marks` of each node made, by `id`; `loops` has the marks of
    stages, by an operand that they store. All are empty without recording.
    """

    _nodes: dict[tuple[object, ...], object] = field(default_factory=dict[tuple[object, ...], object])
    dynamic: dict[str, Node] = field(default_factory=dict[str, "Node"])
    _names: dict[tuple[int, Dim], str] = field(default_factory=dict[tuple[int, Dim], str])
    mark: tuple[int, ...] = ()
    marks: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    loops: dict[int, int] = field(default_factory=dict[int, int])

    @contextmanager
    def apart(self) -> Generator[None]:
        """Forget nodes and names that are made inside."""
        before = self._nodes, self.dynamic, self._names, self.marks
        self._nodes, self.dynamic, self._names = dict(self._nodes), dict(self.dynamic), dict(self._names)
        self.marks = dict(self.marks)
        try:
            yield
        finally:
            self._nodes, self.dynamic, self._names, self.marks = before

    @contextmanager
    def marked(self, mark: tuple[int, ...]) -> Generator[None]:
        """Give nodes that are made inside this mark."""
        before, self.mark = self.mark, mark
        try:
            yield
        finally:
            self.mark = before

    def constant(self, dtype: DType, value: int | float | bool) -> Constant:
        return self._one(Constant, dtype, value)

    def zero(self, dtype: DType) -> Constant:
        """The literal 0, 0.0 or False."""
        return self.constant(dtype, False if dtype.is_bool else 0.0 if dtype.is_float else 0)

    def index_value(self, dtype: DType, index: Dim) -> IndexValue:
        return self._one(IndexValue, dtype, index)

    def load(
        self,
        dtype: DType,
        operand: int,
        address: Dim,
        conditions: tuple[Condition, ...],
        index: tuple[Dim, ...] = (),
    ) -> Load:
        return self._one(Load, dtype, operand, address, conditions, index)

    def apply(self, dtype: DType, op: str, attributes: tuple[object, ...], *args: Node) -> Apply:
        return self._one(Apply, dtype, op, attributes, args)

    def binop(self, kind: str, left: Node, right: Node) -> Apply:
        """`left kind right`, for operands of the same dtype; a comparison gives a bool."""
        dtype = DType.BOOL if kind in ("cmplt", "cmpne") else left.dtype
        return self.apply(dtype, "binop", (kind, left.dtype, right.dtype), left, right)

    def unary(self, kind: str, value: Node) -> Apply:
        return self.apply(value.dtype, "unary", (kind,), value)

    def where(self, condition: Node, here: Node, elsewhere: Node) -> Apply:
        """`here` if the condition holds, else `elsewhere`; both are computed."""
        return self.apply(here.dtype, "ternary", ("where", condition.dtype), condition, here, elsewhere)

    def cast(self, value: Node, dtype: DType) -> Node:
        return value if value.dtype is dtype else self.apply(dtype, "cast", (value.dtype,), value)

    def combined(self, kind: str, left: Node, right: Node) -> Apply:
        """Two values combined by a reduction of this kind."""
        return self.apply(left.dtype, COMBINE, (kind,), left, right)

    def equal(self, left: Node, right: Node) -> Node:
        """Whether both values are equal; false for NaN."""
        return self.negated(self.binop("cmpne", left, right))

    def negated(self, condition: Node) -> Node:
        """Whether the condition does not hold."""
        return self.unary("neg", condition)

    def is_finite(self, value: Node) -> Node:
        """Whether a float is neither infinite nor NaN."""
        return self.equal(self.binop("sub", value, value), self.zero(value.dtype))

    def guard(self, conditions: tuple[Condition, ...], value: Node) -> Node:
        return self._one(Guard, value.dtype, conditions, value) if conditions else value

    def choose(self, conditions: tuple[Condition, ...], first: Node, second: Node) -> Node:
        return self._one(Choose, first.dtype, conditions, first, second) if conditions else first

    def in_range(self, value: Node, extent: Dim) -> InRange:
        return self._one(InRange, value, extent)

    def is_true(self, value: Node) -> IsTrue:
        return self._one(IsTrue, value)

    def dynamic_name(self, value: Node, extent: Dim) -> str:
        """The name under which the run-time integer `value` appears in indices below `extent`."""
        name = self._names.setdefault((id(value), extent), f"v{len(self._names)}")
        self.dynamic[name] = value
        return name

    def _one(self, make: Callable[..., T], *parts: object) -> T:
        key = (make, *(_key(part) for part in parts))
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = make(*parts)
        if self.mark:
            self.marks[id(node)] = tuple(dict.fromkeys((*self.marks.get(id(node), ()), *self.mark)))
        return cast("T", node)


def _key(part: Any) -> object:
    """The key by which parts are equal; floats compare by their repr, so that 0.0 is not -0.0 and NaN equals itself."""
    kind = type(part)
    if kind is tuple:
        return tuple(map(_key, part))
    if kind is float or kind is bool:
        return kind, repr(part)
    return id(part) if kind in _BY_IDENTITY else part


_BY_IDENTITY = frozenset({Constant, IndexValue, Load, Apply, Guard, Choose, InRange, IsTrue})


def children(node: Node) -> Iterator[Node]:
    """The nodes that `node` reads, including those of its conditions, but not those in its addresses."""
    match node:
        case Apply(args=args):
            yield from args
        case Guard(value=value):
            yield value
        case Choose(first=first, second=second):
            yield first
            yield second
        case _:
            pass
    for condition in conditions_of(node):
        if isinstance(condition, InRange | IsTrue):
            yield condition.value


def conditions_of(node: Node) -> tuple[Condition, ...]:
    """The conditions of `node` itself."""
    return node.conditions if isinstance(node, Load | Guard | Choose) else ()


def is_never_negative(node: Node) -> bool:
    """Whether a float is +0, above it, or NaN by its last operations, as behind a relu."""
    match node:
        case Constant(value=value):
            return math.copysign(1.0, value) > 0
        case Guard(value=value):
            return is_never_negative(value)
        case Choose(first=first, second=second):
            return is_never_negative(first) and is_never_negative(second)
        case Apply(op="binop", attributes=("max", *_), args=args):
            # A maximum is NaN if either is, and +0 above -0.
            return any(map(is_never_negative, args))
        case Apply(op="binop", attributes=("min", *_), args=args):
            return all(map(is_never_negative, args))
        case Apply(op="unary", attributes=("exp2", *_)):
            return True
        case _:
            return False


def walk(roots: Iterable[Node], interner: Interner) -> Iterator[Node]:
    """Every node below `roots` once, including those of run-time indices, in no particular order."""
    seen: set[int] = set()
    stack, dynamic = list(roots), interner.dynamic
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        stack.extend(children(node))
        if dynamic:
            for index in indices(node):
                stack.extend(dynamic[name] for name in free_symbols(index) if name in dynamic)


def indices(node: Node) -> Iterator[Dim]:
    """The index expressions in `node` itself."""
    match node:
        case Load(address=index) | IndexValue(index=index):
            yield index
        case _:
            pass
    yield from conditions_on_indices(node)


def depends_on(node: Node, name: str, nodes: Interner) -> bool:
    """Whether an index in the program of `node` contains the name of a loop."""
    return any(name in free_symbols(dim) for each in walk([node], nodes) for dim in indices(each))


def conditions_on_indices(node: Node) -> Iterator[Dim]:
    """The conditions of `node` itself that are index expressions."""
    return (condition for condition in conditions_of(node) if isinstance(condition, int | Expr))
