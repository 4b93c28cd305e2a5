"""The arguments of a call: symbols within their bounds, arrays of the right dtype and shape."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import CallBoundsError, CallInputError
from ..expr import evaluate
from ..infer import Constraint
from ..nodes import SymVar
from ..spec import Binding
from .memory import Array


@dataclass(frozen=True, slots=True)
class InputSpec:
    """What an input must be at one binding of the symbols.

    `position` is that in the graph's inputs; a size of None, which no array has, is one that is not known yet.
    """

    var: int
    position: int
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...]


def bind_symbols(declared: Sequence[SymVar], given: Mapping[str, int]) -> dict[str, int]:
    """The value of every declared symbol. CallBoundsError when one is missing, unknown, no integer or out of bounds."""
    known = {symbol.name for symbol in declared}
    for name in given:
        if name not in known:
            expected = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
            raise CallBoundsError(f"the program has no symbol {name}; {expected}")
    return {symbol.name: _bound_value(symbol, given) for symbol in declared}


def _bound_value(symbol: SymVar, given: Mapping[str, int]) -> int:
    if symbol.name not in given:
        raise CallBoundsError(
            f"the symbol {symbol.name} is missing: pass {symbol.name}=<{symbol.min_val}..{symbol.max_val}>"
        )
    try:
        value = operator.index(given[symbol.name])
    except TypeError as error:
        raise CallBoundsError(f"the symbol {symbol.name} must be an integer, got {given[symbol.name]!r}") from error
    if not symbol.min_val <= value <= symbol.max_val:
        raise CallBoundsError(
            f"variable {symbol.name}={value} is outside bounds [{symbol.min_val}, {symbol.max_val}]",
            details={"symbol": symbol.name, "value": value, "minimum": symbol.min_val, "maximum": symbol.max_val},
        )
    return value


def input_specs(bindings: Sequence[Binding], symbols: Mapping[str, int]) -> tuple[InputSpec, ...]:
    """What the inputs must be. CallInputError when the symbols give one a negative size."""
    specs: list[InputSpec] = []
    for position, binding in enumerate(bindings):
        shape = tuple(evaluate(dim, symbols) for dim in binding.shape)
        if min(shape, default=0) < 0:
            raise CallInputError(f"at {_stated(symbols)} input {position} (var {binding.var}) has the shape {shape}")
        specs.append(InputSpec(binding.var, position, binding.dtype.numpy, shape))
    return tuple(specs)


def accept(specs: Sequence[InputSpec], arrays: Sequence[Any]) -> tuple[list[Array], list[int]]:
    """The arrays as the kernels take them, and their addresses; only one that is not C-contiguous is copied.

    CallInputError when there are too few or too many, or one has another dtype or shape.
    """
    if len(arrays) != len(specs):
        raise CallInputError(f"the program takes {len(specs)} arrays, got {len(arrays)}")
    accepted: list[Array] = []
    addresses: list[int] = []
    for spec, given in zip(specs, arrays, strict=True):
        array = given
        if type(array) is not np.ndarray:
            array = _as_array(spec, array)
        if array.dtype != spec.dtype or array.shape != spec.shape:
            raise _mismatch(spec, array)
        flags = array.flags
        if not (flags.c_contiguous and flags.aligned):
            array = np.array(array, order="C")
        accepted.append(array)
        addresses.append(array.ctypes.data)
    return accepted, addresses


def _as_array(spec: InputSpec, given: Any) -> Array:
    if isinstance(given, np.ndarray | np.generic):
        return np.asarray(given)
    if hasattr(given, "__dlpack__"):
        return np.from_dlpack(given)
    raise CallInputError(
        f"input {spec.position} (var {spec.var}) is a {type(given).__name__}; pass an array of dtype {spec.dtype}"
    )


def _mismatch(spec: InputSpec, array: Array) -> CallInputError:
    what = f"input {spec.position} (var {spec.var})"
    if array.dtype != spec.dtype:
        return CallInputError(f"{what} has the dtype {array.dtype}, the program takes {spec.dtype}; convert it first")
    return CallInputError(f"{what} has the shape {array.shape}, the program takes {spec.shape}")


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
