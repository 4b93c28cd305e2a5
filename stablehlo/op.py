"""One operation, as the input of a translator: operands as values, typed attributes, errors with name and location."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final, NoReturn, Protocol, TypeAlias

import numpy as np

from dialect.mlir import ir
from tensorkiln import build
from tensorkiln.build import Builder, Tensor
from tensorkiln.dtypes import DType
from tensorkiln.errors import InvalidGraphError, LimitExceededError, UnsupportedGraphError
from tensorkiln.expr import Dim, free_symbols
from tensorkiln.limits import MAX_ELEMENTS

from .constants import Constants
from .location import place, shown
from .symbols import Compared
from .types import Typed, typed
from .value import Host, Known, Pair, Value, known_dims

RunRegion: TypeAlias = "Callable[[Any, Sequence[Value], Mode], list[Value]]"
"""`run(region, arguments, mode)`: the operands of the region's terminator."""

_LONGEST_NAME: Final = 100


@dataclass(frozen=True, slots=True)
class Mode:
    """How a region is run: if `is_lifted`, a region on scalars is applied to tensors of any shape.

    `orders`: the region is the comparator of a sort, which orders NaN after all numbers.
    """

    is_lifted: bool = False
    orders: bool = False


class Apart(Protocol):
    """A region that becomes a separate graph, written with `builder`.

    `taken` has pairs of an outer tensor and this graph's input for it, by the outer var.
    """

    @property
    def builder(self) -> Builder: ...
    @property
    def taken(self) -> Mapping[int, tuple[Tensor, Tensor]]: ...

    def capture(self, value: Value) -> Value:
        """The value of this graph for one of the outer graph."""
        ...

    def run(self, arguments: Sequence[Value]) -> list[Value]:
        """The results of the region."""
        ...

    def tensor(self, value: Value) -> Tensor:
        """A real value of this graph as a tensor. UnsupportedGraphError for a complex one."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """State shared by all operations of a translation."""

    builder: Builder
    constants: Constants
    run: RunRegion
    call: Callable[[Op, str, Sequence[Value]], list[Value]]
    apart: Callable[[Op, Any], Apart]
    undecided: dict[int, Compared]
    """Comparisons of dimensions that the graph computes, by the var of the result."""
    unbounded: Collection[str]
    """Symbols without bounds so far; the translation must fail or restart."""
    seen: Callable[[Any], Value]
    """The value of a result of the module that is in scope."""


class Op:
    """An operation with the values of its operands.

    A translator returns one value per result; their types are checked.
    """

    def __init__(self, raw: ir.Operation, operands: Sequence[Value], mode: Mode, around: Surroundings) -> None:
        self.raw = raw
        # Supported names are unchanged; an unknown one is only shown in an error.
        self.name = shown(raw.name, _LONGEST_NAME)
        self.operands = tuple(operands)
        self.mode = mode
        self.builder = around.builder
        self._around = around
        self.undecided = around.undecided
        self._unbounded = around.unbounded

    def fail(self, message: str) -> NoReturn:
        """Raise UnsupportedGraphError for this operation."""
        raise UnsupportedGraphError(self._said(message), pointers=["/stablehlo"], details=self._details)

    def invalid(self, message: str) -> NoReturn:
        """Raise InvalidGraphError, for an operation that StableHLO does not allow."""
        raise InvalidGraphError(self._said(message), pointers=["/stablehlo"], details=self._details)

    def over(self, message: str, limit: str, maximum: int, actual: int) -> NoReturn:
        """Raise LimitExceededError for this operation."""
        raise LimitExceededError(
            self._said(message),
            pointers=["/stablehlo"],
            details=self._details,
            limit=limit,
            maximum=maximum,
            actual=actual,
        )

    def _said(self, message: str) -> str:
        where = self.where
        return f"{self.name} at {where}: {message}" if where else f"{self.name}: {message}"

    @property
    def where(self) -> str:
        """The location for messages."""
        return place(self.raw.location)

    @property
    def _details(self) -> dict[str, Any]:
        return {"op": self.name, "location": self.where}

    # Operands

    def added_to(self, position: int, other: int) -> Value | None:
        """The value whose sum with the operand `position` is the operand `other`; None if that is no such sum."""
        base, total = self.raw.operands[position], self.raw.operands[other].owner
        if not isinstance(total, ir.OpView | ir.Operation) or total.operation.name != "stablehlo.add":
            return None
        terms = list(total.operation.operands)
        return self._around.seen(terms[1 if terms[0] == base else 0]) if base in terms else None

    def tensor(self, position: int) -> Tensor:
        """An operand as a tensor of the graph."""
        return self.as_tensor(self.operands[position])

    def as_tensor(self, value: Value) -> Tensor:
        """A value as a tensor of the graph; a known one becomes a constant. UnsupportedGraphError for a complex one."""
        if isinstance(value, Tensor):
            return value
        if isinstance(value, Pair):
            self.fail("complex numbers are not supported by this operation")
        return self._around.constants.tensor(value, self.over)

    def tensors(self) -> list[Tensor]:
        """All operands as tensors of the graph."""
        return [self.as_tensor(value) for value in self.operands]

    def elements(self) -> list[Tensor]:
        """All operands of an elementwise operation; one with equal elements may have rank 0."""
        return [self.element(value) for value in self.operands]

    def element(self, value: Value) -> Tensor:
        """A value as an operand of an elementwise operation; rank 0 if its elements are equal."""
        if not isinstance(value, Known):
            return self.as_tensor(value)
        splat = value.splat
        if splat is None:
            return self.as_tensor(value)
        if value.is_symbolic:
            return self.as_tensor(known_dims([splat], value.dtype, ()))
        return self.as_tensor(Known(np.asarray(splat, value.array.dtype), value.dtype))

    def known(self, position: int, what: str) -> Host:
        """The array of an operand. UnsupportedGraphError, with `what` in its message, if it is computed at run time."""
        value = self.operands[position]
        if not isinstance(value, Known):
            self.fail(f"{what} is computed at run time, and has to be known when the module is compiled")
        return value.array

    def is_open(self, dim: Dim) -> bool:
        """Whether a dimension depends on a symbol that has no bounds so far."""
        return not isinstance(dim, int) and not free_symbols(dim).isdisjoint(self._unbounded)

    def holds(self, dim: Dim, dtype: DType) -> bool:
        """Whether an integer type represents a dimension for all values of its symbols within their bounds."""
        if self.is_open(dim):
            return True
        low, high = self.builder.bounds(dim)
        return dtype.min <= low and high <= dtype.max

    # Complex numbers

    @property
    def is_complex(self) -> bool:
        """Whether an operand or a result is complex."""
        if any(isinstance(value, Pair) for value in self.operands):
            return True
        found = (typed(each.type) for each in self.raw.results)
        return any(not isinstance(kind, str) and kind.is_complex for kind in found)

    def with_operands(self, operands: Sequence[Value]) -> Op:
        """The same operation with other operands."""
        return Op(self.raw, operands, self.mode, self._around)

    # Results

    @property
    def result_count(self) -> int:
        return len(self.raw.results)

    def result(self, position: int = 0) -> Typed:
        """The type of a result; errors as for `typed`."""
        return self.typed(self.raw.results[position].type)

    def typed(self, kind: ir.Type) -> Typed:
        """Convert a type. UnsupportedGraphError for one that graphs lack, LimitExceededError for too many elements."""
        found = typed(kind)
        if isinstance(found, str):
            self.fail(found)
        # Count dimensions of 0 as 1: strides are computed from the others.
        size = prod(max(dim, 1) for dim in found.shape if dim is not None)
        if size > MAX_ELEMENTS:
            self.over(f"a value has {size} elements; the limit is {MAX_ELEMENTS}", "elements", MAX_ELEMENTS, size)
        return found

    def static_shape(self, position: int = 0) -> tuple[int, ...]:
        """The shape of a result. UnsupportedGraphError unless it is static."""
        shape = self.result(position).shape
        static = tuple(dim for dim in shape if dim is not None)
        return static if len(static) == len(shape) else self.fail("a dimension of its result is not static")

    def whole(self, tensor: Tensor, shape: Sequence[Dim]) -> Tensor:
        """Expand `tensor`, which may have rank 0, to `shape`."""
        return build.expand(tensor, list(shape)) if tensor.shape != tuple(shape) else tensor

    def chosen(self, condition: Tensor, left: Value, right: Value) -> Tensor:
        """Select between two values of one shape, by a condition of rank 0 or of that shape."""
        return self.whole(build.where(condition, self.element(left), self.element(right)), left.shape)

    # Attributes

    def has(self, name: str) -> bool:
        """Whether an attribute is given."""
        return name in self.raw.attributes

    def attribute(self, name: str) -> Any:
        """A required attribute. InvalidGraphError if it is missing."""
        return self.raw.attributes[name] if self.has(name) else self.invalid(f"the attribute {name} is missing")

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer attribute."""
        if default is not None and not self.has(name):
            return default
        return int(ir.IntegerAttr(self.attribute(name)).value)

    def flag(self, name: str) -> bool:
        """A boolean attribute; false if it is not given."""
        return self.has(name) and bool(ir.BoolAttr(self.attribute(name)).value)

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """A list of integers, or of booleans."""
        if default is not None and not self.has(name):
            return list(default)
        found = self.attribute(name)
        if isinstance(found, ir.DenseElementsAttr):
            return [int(value) for value in np.array(found).reshape(-1)]
        return [int(value) for value in found]

    def pairs(self, name: str, count: int) -> list[tuple[int, int]]:
        """A list of pairs of integers; all (0, 0) if it is not given."""
        if not self.has(name):
            return [(0, 0)] * count
        flat = self.integers(name)
        return list(zip(flat[::2], flat[1::2], strict=True))

    def string(self, name: str, default: str | None = None) -> str:
        """A string attribute."""
        if default is not None and not self.has(name):
            return default
        return str(ir.StringAttr(self.attribute(name)).value)

    def choice(self, name: str, kind: Any, known: Collection[str], default: str | None = None) -> str:
        """An enum attribute of the dialect. UnsupportedGraphError unless it is one of `known`."""
        if default is not None and not self.has(name):
            return default
        found = str(kind(self.attribute(name)).value)
        return found if found in known else self.fail(f"{name} {found} is not supported")

    # Regions

    def region(self, position: int) -> Any:
        """A region."""
        return self.raw.regions[position]

    def run(self, position: int, arguments: Sequence[Value], mode: Mode | None = None) -> list[Value]:
        """The results of a region."""
        return self._around.run(self.region(position), arguments, self.mode if mode is None else mode)

    def apart(self, position: int) -> Apart:
        """A region that becomes a separate graph."""
        return self._around.apart(self, self.region(position))

    def lifted(self, position: int, arguments: Sequence[Tensor], orders: bool = False) -> list[Tensor]:
        """The results of a region on scalars, applied to tensors that broadcast together."""
        mode = Mode(is_lifted=True, orders=orders or self.mode.orders)
        return [self.element(value) for value in self.run(position, arguments, mode)]

    def call(self, name: str, arguments: Sequence[Value]) -> list[Value]:
        """The results of a function of the module."""
        return self._around.call(self, name, arguments)
