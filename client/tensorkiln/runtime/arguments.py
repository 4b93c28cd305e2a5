"""Checks of a call's arguments: symbols within their bounds, arrays of the right dtype and shape."""

from __future__ import annotations

import math
import operator
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import CallBoundsError, CallInputError
from ..expr import evaluate
from ..infer import Constraint
from ..nodes import SymVar
from ..spec import Binding


@dataclass(frozen=True, slots=True)
class InputSpec:
    """The dtype and shape that an input must have at one binding of the symbols.

    `position` is the input's position in the graph's inputs; a size of None is not known yet.
    """

    var: int
    position: int
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...]

    def fits(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
        """Whether an array of this dtype and shape fits; an unknown size accepts any."""
        return dtype == self.dtype and (
            shape == self.shape
            or (
                len(shape) == len(self.shape)
                and all(stated in (size, None) for size, stated in zip(shape, self.shape, strict=True))
            )
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, when all sizes are known."""
        return math.prod(size or 0 for size in self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"input {self.position} (var {self.var})"


def bind_symbols(declared: Sequence[SymVar], given: Mapping[str, int]) -> dict[str, int]:
    """The value of every declared symbol. CallBoundsError when one is missing, unknown, no integer or out of bounds."""
    known = {symbol.name for symbol in declared}
    for name in given:
        if name not in known:
            expected = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
            hint = "; arrays are passed by position" if hasattr(given[name], "__len__") else ""
            raise CallBoundsError(f"the program has no symbol {name}; {expected}{hint}")
    return {symbol.name: _bound_value(symbol, given) for symbol in declared}


def symbol_values(declared: Sequence[SymVar], names: Sequence[str], given: Mapping[str, int]) -> tuple[int, ...]:
    """The values of the declared symbols, whose names are `names`.

    Bounds are not checked if all values are plain ints and no name is missing or unknown. Otherwise CallBoundsError as
    for `bind_symbols`.
    """
    values = tuple(map(given.get, names))
    for value in values:
        if type(value) is not int:
            break
    else:
        if len(given) == len(names):
            return values  # type: ignore[return-value]  # none is None
    return tuple(bind_symbols(declared, given).values())


def least_values(declared: Sequence[SymVar]) -> dict[str, int]:
    """The minimum of every symbol, for runs whose results do not depend on symbols."""
    return {symbol.name: symbol.min_val for symbol in declared}


def _bound_value(symbol: SymVar, given: Mapping[str, int]) -> int:
    if symbol.name not in given:
        raise CallBoundsError(
            f"the symbol {symbol.name} is missing: pass {symbol.name}=<{symbol.min_val}..{symbol.max_val}>"
        )
    stated = given[symbol.name]
    if not _is_integer(stated):
        raise CallBoundsError(f"the symbol {symbol.name} must be an integer, got {stated!r}")
    value = operator.index(stated)
    if not symbol.min_val <= value <= symbol.max_val:
        raise CallBoundsError(
            f"symbol {symbol.name}={value} is outside bounds [{symbol.min_val}, {symbol.max_val}]",
            details={"symbol": symbol.name, "value": value, "minimum": symbol.min_val, "maximum": symbol.max_val},
        )
    return value


def _is_integer(value: object) -> bool:
    """Whether it is an int or an integer scalar of NumPy, but not their subclasses bool and timedelta64."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def input_specs(bindings: Sequence[Binding], symbols: Mapping[str, int]) -> tuple[InputSpec, ...]:
    """The specs of the inputs. CallInputError when the symbols give an input a negative size."""
    specs: list[InputSpec] = []
    for position, binding in enumerate(bindings):
        shape = tuple(evaluate(dim, symbols) for dim in binding.shape)
        if min(shape, default=0) < 0:
            raise CallInputError(f"at {_stated(symbols)} input {position} (var {binding.var}) has the shape {shape}")
        specs.append(InputSpec(binding.var, position, binding.dtype.numpy, shape))
    return tuple(specs)


def fixed_specs(
    bindings: Sequence[Binding], resident: Container[int], shapes: Mapping[int, tuple[int, ...] | None]
) -> dict[int, InputSpec]:
    """The specs of inputs to fix, by var, before the symbols are known: a symbolic size takes the size in `shapes`.

    It is None when the shape is None. CallInputError when a var is not an input, or is one of `resident`, which are
    already fixed.
    """
    free = {binding.var: (binding, place) for place, binding in enumerate(bindings) if binding.var not in resident}
    for var in shapes:
        if var not in free:
            raise CallInputError(
                f"var {var} is not a free input; the free inputs are {', '.join(map(str, free)) or 'none'}"
            )
    return {var: _loose_spec(*free[var], shape) for var, shape in shapes.items()}


def _loose_spec(binding: Binding, position: int, given: tuple[int, ...] | None) -> InputSpec:
    shape = tuple(dim if isinstance(dim, int) else None for dim in binding.shape)
    if given is not None and len(given) == len(shape):
        shape = tuple(size if dim is None else dim for dim, size in zip(shape, given, strict=True))
    return InputSpec(binding.var, position, binding.dtype.numpy, shape)


def require_count(specs: Sequence[InputSpec], arrays: Sequence[Any]) -> None:
    """CallInputError when there are too few or too many arrays."""
    if len(arrays) != len(specs):
        raise CallInputError(f"the program takes {len(specs)} arrays, got {len(arrays)}")


def mismatch(spec: InputSpec, dtype: np.dtype[Any], shape: tuple[int, ...]) -> CallInputError:
    """The error for an array whose dtype or shape differs from `spec`."""
    if dtype != spec.dtype:
        return CallInputError(f"{spec} has the dtype {dtype}, but the program takes {spec.dtype}; convert it first")
    return CallInputError(f"{spec} has the shape {shape}, but the program takes {spec.shape}")


def check_constraints(constraints: Sequence[Constraint], symbols: Mapping[str, int]) -> None:
    """CallInputError naming the node when a condition that the compiler could not prove does not hold."""
    for constraint in constraints:
        left, right = evaluate(constraint.left, symbols), evaluate(constraint.right, symbols)
        if left != right if constraint.kind == "eq" else left < right:
            relation = "==" if constraint.kind == "eq" else ">="
            raise CallInputError(
                f"at {_stated(symbols)}: {constraint.message}"
                f" ({constraint.left} {relation} {constraint.right}, but {left} and {right})",
                pointers=(constraint.pointer,),
                details={"left": left, "right": right, "relation": relation},
            )


def _stated(symbols: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in symbols.items()) or "this call"
