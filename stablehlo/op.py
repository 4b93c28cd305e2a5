"""One operation as a translator sees it: operands as values, attributes by type, errors by name and place."""

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
    """How a region is run. One that `is_lifted` is written for scalars, and run on tensors of any shape.

    `orders` is whether it is the comparator of a sort, in which a NaN has a place.
    """

    is_lifted: bool = False
    orders: bool = False


class Apart(Protocol):
    """A region that becomes a graph of its own, written with `builder`.

    `taken` has what it takes of the graph around, by the var there: the tensor there, and its input.
    """

    @property
    def builder(self) -> Builder: ...
    @property
    def taken(self) -> Mapping[int, tuple[Tensor, Tensor]]: ...

    def capture(self, value: Value) -> Value:
        """A value of the graph around as one of this graph."""
        ...

    def run(self, arguments: Sequence[Value]) -> list[Value]:
        """The results of the region."""
        ...

    def tensor(self, value: Value) -> Tensor:
        """A value of this graph, which is no complex number, as a tensor."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all operations of a translation share."""

    builder: Builder
    constants: Constants
    run: RunRegion
    call: Callable[[Op, str, Sequence[Value]], list[Value]]
    apart: Callable[[Op, Any], Apart]
    undecided: dict[int, Compared]
    """Comparisons of dimensions that the graph makes, by the vars of their results."""
    unbounded: Collection[str]
    """Symbols whose bounds are not known yet: the translation is refused in the end, or begins again."""


class Op:
    """An operation with the values of its operands.

    Its translator returns as many values as it has results, whose types are checked.
    """

    def __init__(self, raw: ir.Operation, operands: Sequence[Value], mode: Mode, around: Surroundings) -> None:
        self.raw = raw
        # The name of what is translated is its own; that of anything else is only shown.
        self.name = shown(raw.name, _LONGEST_NAME)
        self.operands = tuple(operands)
        self.mode = mode
        self.builder = around.builder
        self._around = around
        self.undecided = around.undecided
        self._unbounded = around.unbounded

    def fail(self, message: str) -> NoReturn:
        """Refuse the operation: what it asks for is not translated."""
        raise UnsupportedGraphError(self._said(message), pointers=["/stablehlo"], details=self._details)

    def invalid(self, message: str) -> NoReturn:
        """Refuse what StableHLO itself does not allow."""
        raise InvalidGraphError(self._said(message), pointers=["/stablehlo"], details=self._details)

    def over(self, message: str, limit: str, maximum: int, actual: int) -> NoReturn:
        """Refuse what is over a limit."""
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
        """Its location, as a message shows it."""
        return place(self.raw.location)

    @property
    def _details(self) -> dict[str, Any]:
        return {"op": self.name, "location": self.where}

    # Operands

    def tensor(self, position: int) -> Tensor:
        """An operand as a value of the graph."""
        return self.as_tensor(self.operands[position])

    def as_tensor(self, value: Value) -> Tensor:
        """A value as one of the graph; a known one becomes a constant."""
        if isinstance(value, Tensor):
            return value
        if isinstance(value, Pair):
            self.fail("complex numbers are not supported by this operation")
        return self._around.constants.tensor(value, self.over)

    def tensors(self) -> list[Tensor]:
        """All operands as values of the graph."""
        return [self.as_tensor(value) for value in self.operands]

    def elements(self) -> list[Tensor]:
        """All operands of an elementwise operation: one of which every element is the same may have rank 0."""
        return [self.element(value) for value in self.operands]

    def element(self, value: Value) -> Tensor:
        """A value as an operand of something elementwise."""
        if not isinstance(value, Known):
            return self.as_tensor(value)
        splat = value.splat
        if splat is None:
            return self.as_tensor(value)
        if value.is_symbolic:
            return self.as_tensor(known_dims([splat], value.dtype, ()))
        return self.as_tensor(Known(np.asarray(splat, value.array.dtype), value.dtype))

    def known(self, position: int, what: str) -> Host:
        """The array of an operand that must be known; `what` says to the user what it is."""
        value = self.operands[position]
        if not isinstance(value, Known):
            self.fail(f"{what} is computed at run time, and has to be known when the module is compiled")
        return value.array

    def is_open(self, dim: Dim) -> bool:
        """Whether a dimension depends on a symbol whose bounds are not known yet."""
        return not isinstance(dim, int) and not free_symbols(dim).isdisjoint(self._unbounded)

    def holds(self, dim: Dim, dtype: DType) -> bool:
        """Whether an integer type holds a dimension, whatever its symbols are within their bounds."""
        if self.is_open(dim):
            return True
        low, high = self.builder.bounds(dim)
        return dtype.min <= low and high <= dtype.max

    # Complex numbers

    @property
    def is_complex(self) -> bool:
        """Whether an operand or a result is of complex numbers."""
        if any(isinstance(value, Pair) for value in self.operands):
            return True
        found = (typed(each.type) for each in self.raw.results)
        return any(not isinstance(kind, str) and kind.is_complex for kind in found)

    def with_operands(self, operands: Sequence[Value]) -> Op:
        """The same operation on other values."""
        return Op(self.raw, operands, self.mode, self._around)

    # Results

    @property
    def result_count(self) -> int:
        return len(self.raw.results)

    def result(self, position: int = 0) -> Typed:
        """The type of a result. UnsupportedGraphError for one that graphs do not have."""
        return self.typed(self.raw.results[position].type)

    def typed(self, kind: ir.Type) -> Typed:
        """A type. UnsupportedGraphError for one that graphs do not have."""
        found = typed(kind)
        if isinstance(found, str):
            self.fail(found)
        # A dimension of 0 does not excuse the others: arrays are addressed by all of them.
        size = prod(max(dim, 1) for dim in found.shape if dim is not None)
        if size > MAX_ELEMENTS:
            self.over(f"a value has {size} elements; the limit is {MAX_ELEMENTS}", "elements", MAX_ELEMENTS, size)
        return found

    def static_shape(self, position: int = 0) -> tuple[int, ...]:
        """The shape of a result that must be static."""
        shape = self.result(position).shape
        static = tuple(dim for dim in shape if dim is not None)
        return static if len(static) == len(shape) else self.fail("a dimension of its result is not static")

    def whole(self, tensor: Tensor, shape: Sequence[Dim]) -> Tensor:
        """`tensor`, which may be a scalar that stands for all elements, with the shape of the result."""
        return build.expand(tensor, list(shape)) if tensor.shape != tuple(shape) else tensor

    def chosen(self, condition: Tensor, left: Value, right: Value) -> Tensor:
        """One of two values of one shape, by a condition of rank 0 or of that shape."""
        return self.whole(build.where(condition, self.element(left), self.element(right)), left.shape)

    # Attributes

    def has(self, name: str) -> bool:
        """Whether an attribute is given."""
        return name in self.raw.attributes

    def attribute(self, name: str) -> Any:
        """An attribute that must be given."""
        return self.raw.attributes[name] if self.has(name) else self.invalid(f"the attribute {name} is missing")

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer attribute."""
        if default is not None and not self.has(name):
            return default
        return int(ir.IntegerAttr(self.attribute(name)).value)

    def flag(self, name: str) -> bool:
        """A boolean attribute, false where it is not given."""
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
        """A list of pairs of integers, all (0, 0) where it is not given."""
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
        """An attribute of the dialect that is one of a few words."""
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
        """A region as a graph of its own."""
        return self._around.apart(self, self.region(position))

    def lifted(self, position: int, arguments: Sequence[Tensor], orders: bool = False) -> list[Tensor]:
        """The results of a region for scalars, run on tensors that broadcast together."""
        mode = Mode(is_lifted=True, orders=orders or self.mode.orders)
        return [self.element(value) for value in self.run(position, arguments, mode)]

    def call(self, name: str, arguments: Sequence[Value]) -> list[Value]:
        """The results of a function of the module."""
        return self._around.call(self, name, arguments)
