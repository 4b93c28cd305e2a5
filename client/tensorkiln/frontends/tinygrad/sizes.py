"""Sizes of tinygrad's shapes as dimensions: integers, and expressions of its variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...build import Builder
from ...errors import UnsupportedGraphError
from ...expr import Dim, add, floordiv, floormod, idiv, maximum, mod, mul, neg, sub

_BINARY: Final[Mapping[str, Callable[[Dim, Dim], Dim]]] = {
    "ADD": add,
    "SUB": sub,
    "MUL": mul,
    "MAX": maximum,
    "FLOORDIV": floordiv,
    "FLOORMOD": floormod,
    "CDIV": idiv,
    "CMOD": mod,
}


def variable_of(uop: Any) -> Any | None:
    """The variable of a value that is one, bound or not; None for any other value."""
    if uop.op.name == "AFTER" and uop.is_bound_var:
        return uop.src[0]
    return uop if uop.op.name == "BUFFER" and uop.is_variable else None


def values_of(size: Any) -> dict[str, int]:
    """The values of the bound variables in a size, by name."""
    if isinstance(size, int):
        return {}
    return {variable.expr: int(value) for variable, value in size.unbind_all()[1].items()}


class Sizes:
    """Sizes as dimensions of one graph. Each variable becomes a symbol with its bounds."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder

    def symbol(self, variable: Any) -> Dim:
        """The symbol of a variable. InvalidGraphError when two of one name have other bounds."""
        low, high = variable.arg.vmin_vmax
        return self._builder.symbol(variable.expr, int(low), int(high))

    def dim(self, size: Any) -> Dim:
        """Convert a size. UnsupportedGraphError for an operation that dimensions do not have."""
        if isinstance(size, int):
            return size
        variable = variable_of(size)
        if variable is not None:
            return self.symbol(variable)
        name = size.op.name
        if name == "CONST":
            return int(size.val)
        if name == "CAST":
            return self.dim(size.src[0])
        if name == "NEG":
            return neg(self.dim(size.src[0]))
        if name in _BINARY:
            first, second = map(self.dim, size.src)
            return _BINARY[name](first, second)
        raise UnsupportedGraphError(f"a size that {name} computes is not supported")

    def shape(self, uop: Any) -> tuple[Dim, ...]:
        """The shape of a value."""
        return tuple(map(self.dim, uop.shape))
