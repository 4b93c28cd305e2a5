"""One operation with its arguments resolved: the input of an operator's translation function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

import numpy as np

from ... import build
from ...build import Builder, Tensor
from ...dtypes import DType
from ...errors import InvalidGraphError, UnsupportedGraphError
from ...expr import Dim, Expr
from ..composed.complex_numbers import Complex
from .exported import Argument, Array, Operation, TensorType, ValueType

Value: TypeAlias = "Tensor | Complex | Dim | Argument"
"""The value of a name or an argument: a tensor, complex or not, a size, a literal, or a tuple of these."""
Scalar: TypeAlias = "bool | int | float | Expr"
Operand: TypeAlias = "Tensor | Scalar"
Results: TypeAlias = "Tensor | Sequence[Tensor]"
Operator: TypeAlias = "Callable[[Call], Results]"


@dataclass(frozen=True, slots=True)
class Call:
    """An operation whose references are resolved; arguments are read by the names of ATen's schema.

    `results` are torch's types of the results, None for an unread result. `key` returns a new random key at each call,
    `parameter` makes a parameter of an array. `types` are torch's types of all values.

    Methods that read an argument raise UnsupportedGraphError when it has another kind.
    """

    operation: Operation
    builder: Builder
    arguments: Mapping[str, Value]
    results: tuple[TensorType | None, ...]
    key: Callable[[], Tensor]
    parameter: Callable[[Array], Tensor]
    types: Mapping[str, ValueType] = field(default_factory=dict[str, "ValueType"])

    def value(self, name: str) -> Value:
        """The argument as it is; None when it is omitted."""
        return self.arguments.get(name)

    def has(self, name: str) -> bool:
        return self.arguments.get(name) is not None

    def tensor(self, name: str = "self") -> Tensor:
        """A tensor argument."""
        found = self.value(name)
        return found if isinstance(found, Tensor) else self.fail(f"the argument {name} is {found!r}, and no tensor")

    def pair(self, name: str = "self") -> Complex:
        """A complex argument; a real one gets an imaginary part of 0."""
        return self.as_pair(self.value(name), name)

    def as_pair(self, value: object, name: str) -> Complex:
        """Convert a value of the argument `name` to a complex number."""
        if isinstance(value, Complex):
            return value
        if isinstance(value, complex):
            return Complex(*(self.builder.scalar(part, DType.FLOAT64) for part in (value.real, value.imag)))
        if isinstance(value, bool | int | float):
            value = self.builder.scalar(float(value), DType.FLOAT64)
        if not isinstance(value, Tensor):
            self.fail(f"the argument {name} is {value!r}, and no complex number")
        real = value if value.dtype.is_float else value.cast(DType.FLOAT64)
        return Complex(real, build.zeros(self.builder, real.shape, real.dtype))

    def is_complex(self, place: int = 0) -> bool:
        """Whether a result is complex in torch; its element type here is that of its parts."""
        found = self.results[place] if place < len(self.results) else None
        return found is not None and found.is_complex

    def optional(self, name: str) -> Tensor | None:
        return self.tensor(name) if self.has(name) else None

    def tensors(self, name: str) -> list[Tensor]:
        """A list of tensors."""
        found = self.value(name)
        listed = list(found) if isinstance(found, tuple) else self.fail(f"the argument {name} is not a list")
        return [
            each if isinstance(each, Tensor) else self.fail(f"{each!r} in {name} is not a tensor") for each in listed
        ]

    def operand(self, name: str) -> Operand:
        """A tensor or a number, which may depend on symbols."""
        found = self.value(name)
        if isinstance(found, Tensor | Expr | bool | int | float):
            return found
        return self.fail(f"the argument {name} is {found!r}, and neither a tensor nor a number")

    def dim(self, name: str, default: Dim | None = None) -> Dim:
        """An integer that may depend on symbols."""
        found = self.value(name) if self.has(name) else default
        if isinstance(found, Expr) or (isinstance(found, int) and not isinstance(found, bool)):
            return found
        return self.fail(f"the argument {name} is {found!r}, and no integer")

    def dims(self, name: str, default: Sequence[Dim] | None = None) -> list[Dim]:
        """Integers that may depend on symbols."""
        found = self.value(name)
        if found is None and default is not None:
            return list(default)
        if not isinstance(found, tuple) or not all(isinstance(each, int | Expr) for each in found):
            self.fail(f"the argument {name} is {found!r}, and no list of integers")
        return [each for each in found if isinstance(each, int | Expr)]

    def integer(self, name: str, default: int | None = None) -> int:
        found = self.dim(name, default)
        return found if isinstance(found, int) else self.fail(f"the argument {name} is {found}, and must be known")

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        found = self.dims(name, default)
        known = [each for each in found if isinstance(each, int)]
        return known if len(known) == len(found) else self.fail(f"the argument {name} is {found}, and must be known")

    def number(self, name: str, default: float | None = None) -> float:
        found = self.value(name) if self.has(name) else default
        return found if isinstance(found, int | float) else self.fail(f"{name} is {found!r}, and must be known")

    def flag(self, name: str, default: bool = False) -> bool:
        found = self.value(name) if self.has(name) else default
        return bool(found) if isinstance(found, bool | int) else self.fail(f"{name} is {found!r}, and must be known")

    def text(self, name: str, default: str = "") -> str:
        found = self.value(name) if self.has(name) else default
        return found if isinstance(found, str) else self.fail(f"the argument {name} is {found!r}, and no text")

    def axis(self, x: Tensor, name: str = "dim", default: int | None = None) -> int:
        """An axis of `x`, non-negative; a tensor of rank 0 counts as rank 1."""
        given, rank = self.integer(name, default), max(x.rank, 1)
        return given % rank if -rank <= given < rank else self.fail(f"axis {given} is out of range for rank {x.rank}")

    def axes(self, x: Tensor, name: str = "dim") -> list[int]:
        """Axes of `x`, non-negative and sorted; all axes when none are given."""
        found = self.value(name)
        given = [found] if isinstance(found, int) else self.integers(name, [])
        rank = max(x.rank, 1)
        if any(not -rank <= axis < rank for axis in given):
            self.fail(f"the axes {given} are out of range for rank {x.rank}")
        chosen = sorted({axis % rank for axis in given}) if given else list(range(x.rank))
        return [axis for axis in chosen if axis < x.rank]

    def is_read(self, place: int) -> bool:
        """Whether the result at `place` is read."""
        return place < len(self.results) and self.results[place] is not None

    @property
    def dtype(self) -> DType:
        """torch's element type of the first result that is read."""
        return self.dtype_of(next((place for place in range(len(self.results)) if self.is_read(place)), 0))

    def dtype_of(self, place: int, default: DType | None = None) -> DType:
        """torch's element type of a result; `default` when it is not read."""
        found = self.results[place] if place < len(self.results) else None
        if found is None and default is not None:
            return default
        if found is None or found.dtype is None:
            self.fail(f"the element type {found.spelled if found is not None else 'of no result'} is not supported")
        return found.dtype

    def result_shape(self, place: int = 0) -> tuple[Dim, ...]:
        """torch's shape of a result."""
        found = self.results[place]
        return found.shape if found is not None else self.fail("nothing reads the result")

    def as_tensor(self, operand: Operand, dtype: DType) -> Tensor:
        """Convert an operand to an element type, as torch does: integers wrap, a number becomes a constant."""
        if isinstance(operand, Tensor):
            return operand.cast(dtype)
        if isinstance(operand, Expr):
            return build.dim_value(self.builder, operand, dtype)
        return self.builder.scalar(number_in(operand, dtype), dtype)

    def times(self, x: Tensor, name: str) -> Tensor:
        """`x` times the numeric argument `name`; `x` itself when it is 1 or omitted."""
        factor = self.operand(name) if self.has(name) else 1
        if not isinstance(factor, Tensor | Expr) and factor == 1:
            return x
        return x * self.as_tensor(factor, x.dtype)

    def fail(self, message: str) -> NoReturn:
        """Raise UnsupportedGraphError for this operation."""
        raise UnsupportedGraphError(message)

    def invalid(self, message: str) -> NoReturn:
        """Raise InvalidGraphError, for a call that torch does not allow either."""
        raise InvalidGraphError(message)


def number_in(value: bool | int | float, dtype: DType) -> bool | int | float:
    """Convert a number to an element type, as torch does: integers wrap, floats are rounded."""
    if dtype.is_bool:
        return bool(value)
    return _wrapped(int(value), dtype) if dtype.is_integer else _rounded(float(value), dtype)


def _wrapped(value: int, dtype: DType) -> int:
    low, high = int(dtype.min), int(dtype.max)
    return (value - low) % (high - low + 1) + low


def _rounded(value: float, dtype: DType) -> float:
    """Round to a float type; overflow gives an infinity, as in a conversion."""
    with np.errstate(over="ignore"):
        return float(np.asarray(value).astype(dtype.numpy))
