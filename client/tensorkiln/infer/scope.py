"""The context in which a rule infers the type of a node, and refuses invalid nodes."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import NoReturn, cast

from ..dtypes import DType
from ..errors import InvalidGraphError, LimitExceededError, UnsupportedGraphError
from ..expr import Dim, Expr, bounds, depth, free_symbols, mul, neg, sub
from ..limits import MAX_BUFFER_BYTES, MAX_ELEMENTS, MAX_EXPRESSION_DEPTH, MAX_EXPRESSION_TERMS, MAX_RANK
from ..nodes import AnyNode
from ..types import TensorType
from .constraint import Constraint
from .stated import StatedVar

Shape = tuple[Dim, ...]


class Types(dict[int, TensorType]):
    """The types of the vars defined so far; reading another var raises the error of the current node."""

    __slots__ = ("scope",)

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self.scope = scope

    def __missing__(self, var: int) -> NoReturn:
        self.scope.refuse_undefined(var)


class Scope:
    """The state of one walk over a graph; `at` moves it from node to node."""

    __slots__ = ("_constraints", "_interned", "destinations", "inputs", "metadata", "node", "path", "symbols", "types")

    def __init__(
        self,
        metadata: Mapping[int, StatedVar],
        inputs: frozenset[int],
        symbols: Mapping[str, tuple[int, int]],
    ) -> None:
        self.metadata = metadata
        self.inputs = inputs
        self.symbols = symbols
        self.types: dict[int, TensorType] = Types(self)
        self.destinations: dict[int, TensorType] = {}
        self.path: tuple[int | str, ...] = ()
        self.node: AnyNode | None = None
        self._interned: dict[tuple[DType, Shape], TensorType] = {}
        self._constraints: dict[tuple[str, Dim], Constraint] = {}

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        return tuple(self._constraints.values())

    @property
    def pointer(self) -> str:
        """The JSON Pointer of the current node."""
        return "".join(f"/{step}" for step in self.path)

    def fail(self, message: str, *fields: str) -> NoReturn:
        """Refuse the node as invalid, pointing at its `fields` or at the node."""
        raise InvalidGraphError(message, pointers=self._pointers(fields))

    def unsupported(self, message: str, *fields: str) -> NoReturn:
        """Refuses the node as one that this version cannot compile correctly."""
        raise UnsupportedGraphError(message, pointers=self._pointers(fields))

    def over(
        self, limit: str, maximum: int, actual: int, *fields: str, what: str = "this", advice: str = ""
    ) -> NoReturn:
        """Refuses the node for a limit that `what` exceeds."""
        message = f"the limit of {limit.replace('_', ' ')} is {maximum}, {what} has {actual}{advice}"
        pointers = self._pointers(fields)
        raise LimitExceededError(message, pointers=pointers, limit=limit, maximum=maximum, actual=actual)

    def _pointers(self, fields: tuple[str, ...]) -> list[str]:
        pointer = self.pointer
        return [f"{pointer}/{field}" for field in fields] or [pointer]

    def refuse_undefined(self, var: int) -> NoReturn:
        """Refuses the node for an operand that no earlier node defines."""
        values: dict[str, object] = self.node.model_dump() if self.node is not None else {}
        reading = [name for name, value in values.items() if _is_operand(name) and _reads(value, var)]
        if var in self.destinations:
            self.fail(f"var {var} is read before the node that writes it into its buffer", *reading)
        self.fail(f"var {var} is read but no earlier node defines it", *reading)

    def stated_shape(self, var: int) -> Shape | None:
        """The shape that the metadata of `var` states, if there is any."""
        stated = self.metadata.get(var)
        return None if stated is None else stated.shape

    def type(self, dtype: DType, shape: Shape) -> TensorType:
        """The interned object for this type; a new shape is checked against the limits."""
        key = (dtype, shape)
        known = self._interned.get(key)
        if known is None:
            self._admit(shape)
            known = self._interned[key] = TensorType(dtype, shape)
        return known

    def _admit(self, shape: Shape) -> None:
        if len(shape) > MAX_RANK:
            self.over("rank", MAX_RANK, len(shape))
        greatest = 1
        for dim in shape:
            if isinstance(dim, int):
                if dim < 0:
                    self.fail(f"a dimension is negative: {dim}")
                greatest *= dim
            else:
                if depth(dim) > MAX_EXPRESSION_DEPTH:
                    self.over("expression_depth", MAX_EXPRESSION_DEPTH, depth(dim))
                if len(dim.terms) > MAX_EXPRESSION_TERMS:
                    self.over("expression_terms", MAX_EXPRESSION_TERMS, len(dim.terms))
                self.require_ge(dim, 0, "a dimension is not negative")
                greatest *= max(self.bounds(dim)[1], 0)
        self._require_countable(shape)
        if greatest <= MAX_ELEMENTS:
            return
        count = mul(*shape)
        if self.bounds(count)[0] > MAX_ELEMENTS:
            self.over("elements", MAX_ELEMENTS, self.bounds(count)[0])
        self.require_ge(MAX_ELEMENTS, count, f"a value has at most {MAX_ELEMENTS} elements")

    def _require_countable(self, shape: Shape) -> None:
        """Refuse a shape whose number of elements is too complex an expression, in either order of multiplication."""
        if sum(isinstance(dim, Expr) for dim in shape) < 2:
            return
        for dims in (shape, shape[::-1]):
            count = mul(*dims)
            if isinstance(count, Expr) and len(count.terms) > MAX_EXPRESSION_TERMS:
                what, advice = "the product of the dimensions", ": use fewer symbols in one shape"
                self.over("expression_terms", MAX_EXPRESSION_TERMS, len(count.terms), what=what, advice=advice)

    def require_storable(self, kind: TensorType, *fields: str) -> None:
        """Refuses a value that has to exist in memory and takes more bytes than the limit."""
        if all(isinstance(dim, int) for dim in kind.shape):
            count = prod(dim for dim in kind.shape if isinstance(dim, int)) * kind.dtype.itemsize
            if count > MAX_BUFFER_BYTES:
                self.over("buffer_bytes", MAX_BUFFER_BYTES, count, *fields)
            return
        size = mul(*kind.shape, kind.dtype.itemsize)
        least = self.bounds(size)[0]
        if least > MAX_BUFFER_BYTES:
            self.over("buffer_bytes", MAX_BUFFER_BYTES, least, *fields)
        self.require_ge(MAX_BUFFER_BYTES, size, f"a stored value takes at most {MAX_BUFFER_BYTES} bytes", *fields)

    def bounds(self, dim: Dim) -> tuple[int, int]:
        """The interval of `dim` over the bounds of the symbols; an undeclared symbol is the node's error."""
        if isinstance(dim, int):
            return dim, dim
        unknown = free_symbols(dim) - self.symbols.keys()
        if unknown:
            self.fail(f"the symbol {min(unknown)} is not declared: add it to symbolic_vars")
        return bounds(dim, self.symbols)

    def require_eq(self, left: Dim, right: Dim, message: str, *fields: str) -> None:
        """Refuses the node unless `left == right` can hold; unless it must, it becomes a constraint of the call."""
        if left == right:
            return
        difference = sub(left, right)
        low, high = self.bounds(difference)
        if not low <= 0 <= high:
            self.fail(f"{message}: {left} and {right}", *fields)
        if low < high and ("eq", neg(difference)) not in self._constraints:
            constraint = Constraint("eq", left, right, self.pointer, message)
            self._constraints.setdefault(("eq", difference), constraint)

    def require_ge(self, left: Dim, right: Dim, message: str, *fields: str) -> None:
        """Refuses the node unless `left >= right` can hold; unless it must, it becomes a constraint of the call."""
        difference = sub(left, right)
        low, high = self.bounds(difference)
        if high < 0:
            self.fail(f"{message}: {left} is less than {right}", *fields)
        if low < 0:
            constraint = Constraint("ge", left, right, self.pointer, message)
            self._constraints.setdefault(("ge", difference), constraint)

    def require_same_shape(self, left: Shape, right: Shape, message: str, *fields: str) -> None:
        """`require_eq` of two shapes, axis by axis."""
        if left == right:
            return
        if len(left) != len(right):
            self.fail(f"{message}: {shape_text(left)} and {shape_text(right)}", *fields)
        for mine, other in zip(left, right, strict=True):
            if mine != other and isinstance(mine, int) and isinstance(other, int):
                self.fail(f"{message}: {shape_text(left)} and {shape_text(right)}", *fields)
            self.require_eq(mine, other, message, *fields)

    def require_dtype(self, node_dtype: DType, inferred: DType) -> None:
        """Refuses the node unless its `dtype` is the inferred one."""
        if node_dtype is not inferred:
            self.fail(f"the dtype of the result is {inferred}, but the node says {node_dtype}", "dtype")

    def require_axis(self, axis: int, rank: int, field: str) -> None:
        """Refuses the node unless `0 <= axis < rank`."""
        if not 0 <= axis < rank:
            self.fail(f"axis {axis} is outside of a value of rank {rank}", field)


def _is_operand(field: str) -> bool:
    return field != "out_var" and field.endswith(("_var", "_vars", "deps", "updates"))


def _reads(value: object, var: int) -> bool:
    """Whether a dumped field, a var or nested sequences of vars, holds `var`."""
    if isinstance(value, tuple):
        return any(_reads(item, var) for item in cast("tuple[object, ...]", value))
    return value == var


def shape_text(shape: Shape) -> str:
    """A shape as a message shows it."""
    return f"[{', '.join(str(dim) for dim in shape)}]"
