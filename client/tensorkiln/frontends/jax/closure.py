"""Conversion of a trace's constants, the arrays that a function closes over, to arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .installed import installed

LEAST_BYTES: Final = 1024
"""The least bytes of a constant that becomes a parameter; smaller ones stay constants, which kernels can fold."""
_CALLS: Final = frozenset({"jit", "pjit"})


def without_constants(closed: Any) -> tuple[Callable[..., Sequence[Any]], list[Any]]:
    """A function that takes the large constants of a `ClosedJaxpr` after its arguments, and these constants.

    Includes constants of nested jitted functions. A constant inside the body of a loop or branch is included if JAX has
    made it an argument of that.
    """
    found: dict[int, Any] = {}
    is_nested = _collect(closed, found, 0)
    order = {key: place for place, key in enumerate(found)}
    arguments = len(closed.jaxpr.invars)

    def function(*leaves: Any) -> Sequence[Any]:
        given, parameters = leaves[:arguments], leaves[arguments:]

        def placed(constants: Sequence[Any]) -> list[Any]:
            return [parameters[order[id(each)]] if id(each) in order else each for each in constants]

        if is_nested:
            return _evaluated(closed, given, placed)
        core = installed("jax.extend.core")
        return core.jaxpr_as_fun(core.ClosedJaxpr(closed.jaxpr, placed(closed.consts)))(*given)

    return function, list(found.values())


def _collect(closed: Any, found: dict[int, Any], level: int) -> bool:
    """Collect the large constants in `found`; return whether some belong to a nested function."""
    large = {id(each): each for each in closed.consts if _is_large(each)}
    is_nested = bool(large) and level > 0
    found.update(large)
    for equation in closed.jaxpr.eqns:
        if equation.primitive.name in _CALLS:
            is_nested |= _collect(equation.params["jaxpr"], found, level + 1)
    return is_nested


def _is_large(constant: Any) -> bool:
    # A typed key has no NumPy dtype.
    return isinstance(getattr(constant, "dtype", None), np.dtype) and constant.nbytes >= LEAST_BYTES


def _evaluated(closed: Any, given: Sequence[Any], placed: Callable[[Sequence[Any]], list[Any]]) -> list[Any]:
    """Evaluate a jaxpr, including nested jitted functions."""
    literal = installed("jax.extend.core").Literal
    jaxpr = closed.jaxpr
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, placed(closed.consts), strict=True))
    values.update(zip(jaxpr.invars, given, strict=True))

    def read(variable: Any) -> Any:
        return variable.val if isinstance(variable, literal) else values[variable]

    for equation in jaxpr.eqns:
        operands = [read(variable) for variable in equation.invars]
        primitive = equation.primitive
        if primitive.name in _CALLS:
            results = _evaluated(equation.params["jaxpr"], operands, placed)
        else:
            results = _bound(primitive, operands, equation.params)
        values.update(zip(equation.outvars, results, strict=True))
    return [read(variable) for variable in jaxpr.outvars]


def _bound(primitive: Any, operands: Sequence[Any], parameters: Any) -> Sequence[Any]:
    """Evaluate one equation."""
    found = primitive.get_bind_params(parameters)
    # Until 2026, JAX returned a primitive's function arguments separately from its parameters.
    functions, parameters = found if isinstance(found, tuple) else ((), found)
    results = primitive.bind(*functions, *operands, **parameters)
    return results if primitive.multiple_results else [results]
