"""Arguments and results: arrays in tuples, lists and dicts, and beside them what a trace is made for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from ...errors import CallInputError
from .installed import installed
from .sizes import variable_of

Kind: TypeAlias = Literal["array", "variable", "fixed", "tuple", "list", "dict"]


@dataclass(frozen=True, slots=True)
class Structure:
    """What a value is made of; equal for values that one trace stands for. `names` are the keys of a dict.

    `fixed` has a value that is neither an array nor a variable, with its type: 1, 1.0 and True are equal, and not the
    same.
    """

    kind: Kind
    children: tuple[Structure, ...] = ()
    names: tuple[Any, ...] = ()
    fixed: tuple[Any, ...] = ()

    def rebuilt(self, leaves: Iterator[Any]) -> Any:
        """The value with other arrays and variables, in their order."""
        if self.kind in ("array", "variable"):
            return next(leaves)
        if self.kind == "fixed":
            return self.fixed[-1]
        parts = [child.rebuilt(leaves) for child in self.children]
        if self.kind == "dict":
            return dict(zip(self.names, parts, strict=True))
        return tuple(parts) if self.kind == "tuple" else parts


def taken_apart(value: Any, where: str) -> tuple[Structure, dict[str, Any]]:
    """The structure of a value, and its arrays and variables by where they stand, such as `args[0]['w']`."""
    leaves: dict[str, Any] = {}
    return _structure(value, where, leaves), leaves


def call_apart(arguments: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Structure, dict[str, Any]]:
    """As `taken_apart`, of the pair of the arguments of a call, `args` and `kwargs`."""
    leaves: dict[str, Any] = {}
    children = (_structure(arguments, "args", leaves), _structure(dict(named), "kwargs", leaves))
    return Structure("tuple", children), leaves


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
        return Structure("dict", children, tuple(named))
    try:
        hash(value)
    except TypeError:
        raise CallInputError(
            f"{where} is a {type(value).__name__}, which is no array and cannot be hashed; give a tuple instead"
        ) from None
    exact = value.hex() if isinstance(value, float) else value
    return Structure("fixed", fixed=(type(value), exact, value) if isinstance(value, float) else (type(value), value))
