"""Static arguments of a function, by position and by name, whose values a trace depends on."""

from __future__ import annotations

import inspect
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ...errors import RequestError


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of one call: arrays, and static ones by position and by name."""

    arrays: tuple[Any, ...]
    named: dict[str, Any]
    static: tuple[tuple[int, Any], ...]
    static_named: tuple[tuple[str, Any], ...]

    @property
    def key(self) -> tuple[Any, ...]:
        """A cache key of the static arguments that distinguishes 1, 1.0 and True, and 0.0 and -0.0."""
        return tuple((place, _exact(value)) for place, value in (*self.static, *self.static_named))

    def call(self, function: Callable[..., Any], arrays: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Call `function` with these arrays, and the static arguments at their places."""
        arguments = list(arrays)
        for place, value in self.static:
            arguments.insert(place, value)
        return function(*arguments, **named, **dict(self.static_named))


def _exact(value: Any) -> Any:
    """A key that is equal only for equal values of equal types, also inside tuples and frozensets."""
    kind = type(value)
    if isinstance(value, tuple):
        return kind, tuple(_exact(each) for each in cast("tuple[Any, ...]", value))
    if isinstance(value, frozenset):
        return kind, frozenset(_exact(each) for each in cast("frozenset[Any]", value))
    if isinstance(value, float):
        return kind, struct.pack("<d", value)
    if isinstance(value, complex):
        return kind, struct.pack("<dd", value.real, value.imag)
    if isinstance(value, np.generic):
        return kind, value.dtype.str, value.tobytes()
    return kind, value


@dataclass(frozen=True, slots=True)
class Statics:
    """The positions and names of a function's static arguments."""

    places: frozenset[int]
    names: frozenset[str]

    @staticmethod
    def of(function: Callable[..., Any], places: int | Sequence[int], names: str | Sequence[str]) -> Statics:
        """Complete positions by names and names by positions, so that a static argument may be passed either way.

        RequestError for an argument that the function does not have.
        """
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        positional = [each.name for each in parameters if each.kind in by_place]
        takes_any = not parameters or any(each.kind is each.VAR_POSITIONAL for each in parameters)
        takes_any_name = not parameters or any(each.kind is each.VAR_KEYWORD for each in parameters)
        wanted = {places} if isinstance(places, int) else {*places}
        called = {names} if isinstance(names, str) else {*names}
        found = {place + len(positional) if place < 0 else place for place in wanted}
        if not takes_any and (beyond := sorted(place for place in found if not 0 <= place < len(positional))):
            raise RequestError(
                f"static_argnums has {beyond[0]}; the function has {len(positional)} positional arguments."
            )
        known = {each.name for each in parameters}
        if not takes_any_name and (unknown := sorted(called - known)):
            raise RequestError(f"static_argnames has {unknown[0]!r}; the function takes {', '.join(sorted(known))}.")
        places_of_names = {place for place, name in enumerate(positional) if name in called}
        names_of_places = {positional[place] for place in found if place < len(positional)}
        return Statics(frozenset(found | places_of_names), frozenset(called | names_of_places))

    def apart(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Given:
        """Separate the static arguments of a call. RequestError for a static one that is not hashable."""
        given = Given(
            tuple(value for place, value in enumerate(arguments) if place not in self.places),
            {name: value for name, value in named.items() if name not in self.names},
            tuple((place, value) for place, value in enumerate(arguments) if place in self.places),
            tuple(sorted((name, value) for name, value in named.items() if name in self.names)),
        )
        for place, value in (*given.static, *given.static_named):
            try:
                hash(value)
            except TypeError:
                raise RequestError(
                    f"The static argument {place!r} is a {type(value).__name__}, which cannot be hashed; "
                    "give a tuple or a frozen dataclass."
                ) from None
        return given
