"""Nested arguments and results: arrays in tuples, lists, dicts and dataclasses, and fixed values."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Final, Literal, TypeAlias, cast

import numpy as np

from ...errors import CallInputError
from .installed import installed
from .sizes import variable_of

Kind: TypeAlias = Literal["array", "variable", "fixed", "tuple", "list", "dict", "named tuple", "dataclass"]


@dataclass(frozen=True, slots=True)
class Structure:
    """The structure of a value; equal for values that share a trace. `names` are the keys of a dict, or fields.

    `exact` distinguishes equal values of different types or signs, such as 1, 1.0 and True, or 0.0 and -0.0. `kept` is
    a fixed value, which contains no array.
    """

    kind: Kind
    children: tuple[Structure, ...] = ()
    names: tuple[Any, ...] = ()
    exact: tuple[Any, ...] = ()
    kept: Any = field(default=None, compare=False)

    def rebuilt(self, leaves: Iterator[Any]) -> Any:
        """Rebuild the value with the arrays and variables of `leaves`, in order."""
        if self.kind in ("array", "variable"):
            return next(leaves)
        if self.kind == "fixed":
            return self.kept
        parts = [child.rebuilt(leaves) for child in self.children]
        if self.kind == "dict":
            return dict(zip(self.names, parts, strict=True))
        if self.kind == "named tuple":
            return tuple.__new__(self.exact[0], parts)
        if self.kind == "dataclass":
            made = object.__new__(self.exact[0])
            for name, part in zip(self.names, parts, strict=True):
                # Also sets fields that are frozen or that `__init__` does not take.
                object.__setattr__(made, name, part)
            return made
        return tuple(parts) if self.kind == "tuple" else parts


def taken_apart(value: Any, where: str) -> tuple[Structure, dict[str, Any]]:
    """The structure of a value, and its arrays and variables by path, such as `args[0]['w']`.

    CallInputError for a value that cannot be compared, and for an unsupported object that holds arrays.
    """
    leaves: dict[str, Any] = {}
    return _structure(value, where, leaves), leaves


def call_apart(
    arguments: tuple[Any, ...], named: Mapping[str, Any], *, is_method: bool = False
) -> tuple[Structure, dict[str, Any]]:
    """Like `taken_apart`, for the pair `args` and `kwargs` of a call.

    The first argument of a method may be any object with arrays, as if the function closed over it.
    """
    leaves: dict[str, Any] = {}
    owner = [_owner(arguments[0], "args[0]", leaves)] if is_method else []
    rest = tuple(
        _structure(each, f"args[{place}]", leaves) for place, each in enumerate(arguments) if place >= len(owner)
    )
    children = (Structure("tuple", (*owner, *rest)), _structure(dict(named), "kwargs", leaves))
    return Structure("tuple", children), leaves


def _owner(value: Any, where: str, leaves: dict[str, Any]) -> Structure:
    if _is_itself(value):
        return Structure("fixed", exact=(type(value), value), kept=value)
    return _structure(value, where, leaves)


def _structure(value: Any, where: str, leaves: dict[str, Any]) -> Structure:
    if isinstance(value, installed().Tensor | np.ndarray):
        leaves[where] = value
        return Structure("array")
    if isinstance(value, installed("tinygrad.uop.ops").UOp):
        if variable_of(value) is None:
            raise CallInputError(f"{where} is a {value.op.name} of tinygrad's: give a bound Variable, or a tensor")
        leaves[where] = value
        return Structure("variable")
    if type(value) in (tuple, list):
        parts = cast("list[Any]", value)
        children = tuple(_structure(each, f"{where}[{place}]", leaves) for place, each in enumerate(parts))
        return Structure("tuple" if isinstance(value, tuple) else "list", children)
    if type(value) is dict:
        named = cast("Mapping[Any, Any]", value)
        children = tuple(_structure(each, f"{where}[{name!r}]", leaves) for name, each in named.items())
        return Structure("dict", children, tuple(named), tuple(map(type, named)))
    if isinstance(value, tuple) and hasattr(cast("Any", type(value)), "_fields"):
        return _of_fields(
            "named tuple", value, dict(zip(cast("Any", value)._fields, value, strict=True)), where, leaves
        )
    if is_dataclass(value) and not isinstance(value, type) and (not _is_itself(value) or _has_array(value)):
        return _of_fields("dataclass", value, _fields(value), where, leaves)
    return _fixed(value, where)


def _is_itself(value: Any) -> bool:
    """Whether it compares by identity."""
    return type(value).__eq__ is object.__eq__


def _fields(value: Any) -> dict[str, Any]:
    """The attributes of a dataclass instance, including those that are not fields."""
    stated = {each.name: getattr(value, each.name) for each in fields(value) if hasattr(value, each.name)}
    return {**stated, **getattr(value, "__dict__", {})}


def _of_fields(kind: Kind, value: Any, parts: Mapping[str, Any], where: str, leaves: dict[str, Any]) -> Structure:
    """The structure of an object from its fields; it is a fixed value if no field holds an array."""
    before = len(leaves)
    children = tuple(_structure(each, f"{where}.{name}", leaves) for name, each in parts.items())
    if len(leaves) > before:
        return Structure(kind, children, tuple(parts), (type(value),))
    return Structure("fixed", children, tuple(parts), (type(value),), value)


def _fixed(value: Any, where: str) -> Structure:
    try:
        hash(value)
    except TypeError:
        raise CallInputError(
            f"{where} is a {type(value).__name__}, which is not an array and cannot be hashed; give a tuple instead"
        ) from None
    if any(map(_has_array, _held(value))):
        raise CallInputError(
            f"{where} is a {type(value).__name__} that holds arrays, which would be fixed: give them in a tuple, list, "
            f"dict, NamedTuple or dataclass, or have the function close over it"
        )
    return Structure("fixed", exact=(type(value), _exact(value)), kept=value)


def _exact(value: Any) -> Any:
    """A key that distinguishes a value from others that compare equal."""
    if isinstance(value, np.generic):
        return value.dtype.str, value.tobytes()
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, complex):
        return value.real.hex(), value.imag.hex()
    if isinstance(value, frozenset):
        return frozenset((type(each), _exact(each)) for each in cast("frozenset[Any]", value))
    return value


def _held(value: Any) -> Iterator[Any]:
    """The attributes of an object, and the elements of a tuple, frozenset or partial."""
    if isinstance(value, _PLAIN):
        return
    if isinstance(value, tuple | frozenset):
        yield from cast("tuple[Any, ...]", value)
    if isinstance(value, functools.partial):
        yield from (value.args, value.keywords)
    yield from getattr(value, "__dict__", {}).values()
    for each in type(value).__mro__:
        slots = each.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            yield getattr(value, name, None)


def _has_array(value: Any) -> bool:
    """Whether a value is or contains an array or a variable, which each call passes."""
    if isinstance(value, installed().Tensor | np.ndarray):
        return True
    if isinstance(value, dict):
        return any(map(_has_array, cast("dict[Any, Any]", value).values()))
    if isinstance(value, tuple | list | set | frozenset):
        return any(map(_has_array, cast("tuple[Any, ...]", value)))
    if isinstance(value, installed("tinygrad.uop.ops").UOp):
        return variable_of(value) is not None
    return is_dataclass(value) and not isinstance(value, type) and any(map(_has_array, _fields(value).values()))


_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), type, np.generic)
"""Types whose values contain no other objects."""
