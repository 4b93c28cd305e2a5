"""A value of the graph being built, with operators and methods that add nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..dtypes import DType
from . import (
    activation,
    arithmetic,
    bits,
    comparison,
    contraction,
    conversion,
    division,
    error_function,
    indexing,
    movement,
    normalization,
    padding,
    reduction,
    rounding,
    search,
    selection,
    slicing,
    transcendental,
)
from .mistakes import OperandError, UnknownNameError
from .numpy_functions import write_function, write_ufunc
from .operands import Operand
from .other_names import METHODS, no_such

if TYPE_CHECKING:
    from .builder import Builder
    from .shape import Shape


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tensor:
    """One var of a graph. Operands of an operator have one dtype; a Python scalar adopts the tensor's.

    Comparisons are elementwise, so a tensor has no truth value; it is hashed by identity.
    """

    builder: Builder
    var: int
    dtype: DType
    shape: Shape

    @property
    def rank(self) -> int:
        return len(self.shape)

    ndim = rank

    @property
    def T(self) -> Tensor:
        """The tensor with its axes in reversed order."""
        return movement.permute(self, list(reversed(range(len(self.shape)))))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **options: Any) -> Any:
        return write_ufunc(ufunc, method, operands, options)

    def __array_function__(self, function: Any, types: Any, arguments: tuple[Any, ...], options: Any) -> Any:
        return write_function(function, arguments, options)

    if not TYPE_CHECKING:  # for which there are no other names

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("__") or name in Tensor.__slots__:
                raise AttributeError(name)
            raise UnknownNameError(no_such("a tensor", name, dir(Tensor), METHODS))

    def __repr__(self) -> str:
        return f"Tensor(v{self.var}: {self.dtype}[{', '.join(map(str, self.shape))}])"

    def __bool__(self) -> NoReturn:
        raise OperandError("a tensor has no truth value while the graph is being written; use where, & or |")

    def __iter__(self) -> NoReturn:
        raise OperandError("a tensor is not iterable; use split or x[i]")

    def __len__(self) -> int:
        """The size of the first axis. OperandError where that is symbolic, or there is none."""
        if self.shape and isinstance(self.shape[0], int):
            return self.shape[0]
        raise OperandError(f"{self!r} has no length that is known while the graph is being written; use x.shape")

    def _no_number(self, *given: object) -> NoReturn:
        raise OperandError(
            "a tensor has no values while the graph is being written: compile the graph, call the program, "
            "and read the value from its result"
        )

    __float__ = __int__ = __index__ = __complex__ = __array__ = _no_number

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise OperandError("a tensor cannot be changed; make another by where, scatter, cat or pad")

    def __call__(self, *given: object) -> NoReturn:
        raise OperandError("a tensor is not a function: the program that a graph compiles to is called with arrays")

    def __round__(self, digits: int | None = None) -> Tensor:
        if digits:
            raise OperandError("round rounds a tensor to whole numbers; scale it before and after for digits")
        return rounding.rint(self)

    def __divmod__(self, other: Operand) -> tuple[Tensor, Tensor]:
        return division.floor_divide(self, other), division.floor_remainder(self, other)

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: Operand) -> Tensor:  # type: ignore[override]
        return comparison.equal(self, other)

    def __ne__(self, other: Operand) -> Tensor:  # type: ignore[override]
        return comparison.not_equal(self, other)

    __lt__ = comparison.less
    __le__ = comparison.less_equal
    __gt__ = comparison.greater
    __ge__ = comparison.greater_equal

    __add__ = arithmetic.add
    __sub__ = arithmetic.sub
    __mul__ = arithmetic.mul
    __truediv__ = arithmetic.divide
    __floordiv__ = division.floor_divide
    __mod__ = division.floor_remainder
    __pow__ = arithmetic.power
    __matmul__ = contraction.matmul
    __and__ = bits.bit_and
    __or__ = bits.bit_or
    __xor__ = bits.bit_xor
    __lshift__ = bits.shift_left
    __rshift__ = bits.shift_right
    __neg__ = arithmetic.negate
    __invert__ = bits.invert
    __abs__ = arithmetic.absolute
    __getitem__ = slicing.getitem

    def __radd__(self, other: Operand) -> Tensor:
        return arithmetic.add(other, self)

    def __rsub__(self, other: Operand) -> Tensor:
        return arithmetic.sub(other, self)

    def __rmul__(self, other: Operand) -> Tensor:
        return arithmetic.mul(other, self)

    def __rtruediv__(self, other: Operand) -> Tensor:
        return arithmetic.divide(other, self)

    def __rfloordiv__(self, other: Operand) -> Tensor:
        return division.floor_divide(other, self)

    def __rmod__(self, other: Operand) -> Tensor:
        return division.floor_remainder(other, self)

    def __rpow__(self, other: Operand) -> Tensor:
        return arithmetic.power(other, self)

    def __rand__(self, other: Operand) -> Tensor:
        return bits.bit_and(other, self)

    def __ror__(self, other: Operand) -> Tensor:
        return bits.bit_or(other, self)

    def __rxor__(self, other: Operand) -> Tensor:
        return bits.bit_xor(other, self)

    def __rlshift__(self, other: Operand) -> Tensor:
        return bits.shift_left(other, self)

    def __rrshift__(self, other: Operand) -> Tensor:
        return bits.shift_right(other, self)

    cast = conversion.cast
    bitcast = bits.bitcast

    sum = reduction.sum_
    prod = reduction.prod
    max = reduction.max_
    min = reduction.min_
    any = reduction.any_
    all = reduction.all_
    mean = reduction.mean
    var_ = reduction.var
    std = reduction.std
    argmax = search.argmax
    argmin = search.argmin

    reshape = movement.reshape
    permute = movement.permute
    transpose = movement.transpose
    moveaxis = movement.moveaxis
    expand = movement.expand
    flip = movement.flip
    squeeze = movement.squeeze
    unsqueeze = movement.unsqueeze
    flatten = movement.flatten
    pad = padding.pad

    gather = indexing.gather
    take = indexing.take
    clip = selection.clip

    exp = transcendental.exp
    exp2 = transcendental.exp2
    log = transcendental.log
    log2 = transcendental.log2
    sqrt = transcendental.sqrt
    rsqrt = transcendental.rsqrt
    reciprocal = transcendental.reciprocal
    sin = transcendental.sin
    cos = transcendental.cos
    floor = rounding.floor
    ceil = rounding.ceil
    trunc = rounding.trunc
    round = rounding.rint
    erf = error_function.erf

    relu = activation.relu
    sigmoid = activation.sigmoid
    tanh = activation.tanh
    gelu = activation.gelu
    silu = activation.silu
    softmax = normalization.softmax
    log_softmax = normalization.log_softmax
    layer_norm = normalization.layer_norm
