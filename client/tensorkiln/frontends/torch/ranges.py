"""Bounds of symbols, from torch and from the caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from ...errors import RequestError, UnsupportedGraphError
from ...expr import Dim, Expr, free_symbols, substitute, to_text
from ..bounds import Bounds, require_known
from .exported import Exported, Role, TensorType, ValueType

INFINITE: Final = 1 << 40
"""Bounds of torch beyond this mean infinity."""


def limited(
    exported: Exported, symbols: Mapping[str, Bounds], most: Callable[[str], int] | None = None
) -> tuple[Exported, dict[str, tuple[int, int]]]:
    """The program with fixed sizes substituted, and the inclusive bounds of the symbols of its inputs.

    `symbols` gives bounds or a value by torch's name of the symbol or by `<input>_<axis>`; `most` gives an upper
    bound if torch's is infinite. RequestError for an unknown name and for bounds outside torch's;
    UnsupportedGraphError, which lists all symbols without an upper bound.
    """
    places = _places(exported)
    names = {name: name for name in places} | {place: name for name, own in places.items() for place in own}
    require_known(symbols, names)
    given: dict[str, Bounds] = {}
    for name, bounds in symbols.items():
        if given.setdefault(names[name], bounds) != bounds:
            raise RequestError(f"the symbol {names[name]} has other bounds by {name!r} than by another name of it")
    found: dict[str, tuple[int, int]] = {}
    fixed: dict[str, Dim] = {}
    open_ended: list[str] = []
    for name, own in places.items():
        low, high = exported.ranges.get(name, (0, None))
        high = None if high is not None and high >= INFINITE else high
        wanted = given.get(name)
        if isinstance(wanted, int):
            fixed[name] = wanted
            _within(name, (wanted, wanted), low, high)
        elif wanted is not None:
            _within(name, wanted, low, high)
            found[name] = wanted
        elif high is not None:
            found[name] = low, high
        elif most is not None:
            found[name] = low, max(low, most(name))
        else:
            open_ended.append(f"{name} (at least {low}; the size of {', '.join(own) or 'no input'})")
    if open_ended:
        name = open_ended[0].partition(" ")[0]
        raise UnsupportedGraphError(
            f"torch knows no upper bound of {'; '.join(open_ended)}: give bounds as symbols={{{name!r}: (2, 64)}}, "
            "or a size that fixes it",
            details={"dimension": name},
        )
    if not fixed:
        return exported, found
    types = {name: _substituted(known, fixed) for name, known in exported.types.items()}
    return replace(exported, types=types), found


def _within(name: str, wanted: tuple[int, int], low: int, high: int | None) -> None:
    if wanted[0] < low or (high is not None and wanted[1] > high) or wanted[0] > wanted[1]:
        stated = f"at least {low}" if high is None else f"from {low} to {high}"
        raise RequestError(f"the symbol {name} is {stated} in torch's program, which {wanted} is not within")


def _places(exported: Exported) -> dict[str, list[str]]:
    """The symbols of the inputs, with the axes that have each as their size."""
    found: dict[str, list[str]] = {}
    for entry in exported.inputs:
        known = exported.types.get(entry.name)
        dims: tuple[Dim, ...] = known.shape if isinstance(known, TensorType) else () if known is None else (known,)
        for axis, dim in enumerate(dims):
            for name in sorted(free_symbols(dim)) if isinstance(dim, Expr) else ():
                own = found.setdefault(name, [])
                if entry.role is Role.USER and isinstance(known, TensorType) and to_text(dim) == name:
                    own.append(f"{entry.name}_{axis}")
    return found


def _substituted(known: ValueType, values: Mapping[str, Dim]) -> ValueType:
    if isinstance(known, TensorType):
        return replace(known, shape=tuple(substitute(dim, values) for dim in known.shape))
    return substitute(known, values)
