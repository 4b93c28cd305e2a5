"""JAX's pytrees of tuples, lists, dicts and None, without JAX."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias, cast

from flatbuffers import number_types

from ...errors import CallInputError, InvalidGraphError, UnsupportedGraphError
from .flat import FlatTable

Kind: TypeAlias = Literal["leaf", "none", "tuple", "list", "dict"]
_KINDS: Final[tuple[Kind, ...]] = ("leaf", "none", "tuple", "list", "dict")
_KIND, _CHILDREN, _NAMES, _CUSTOM = range(4)


@dataclass(frozen=True)
class Tree:
    """The structure of a tree. `names` are the keys of a dict, in the order of `children`."""

    kind: Kind
    children: tuple[Tree, ...] = ()
    names: tuple[str, ...] = ()

    @cached_property
    def leaves(self) -> int:
        """The number of leaves."""
        return 1 if self.kind == "leaf" else sum(child.leaves for child in self.children)

    def flatten(self, value: Any, where: str) -> Iterator[tuple[str, Any]]:
        """The leaves of `value`, in order, each with its path, such as `[0]['w']`.

        CallInputError when `value` has another structure.
        """
        if self.kind == "leaf":
            yield where, value
            return
        if self.kind == "none":
            if value is not None:
                raise CallInputError(f"{where} must be None, not {type(value).__name__}")
            return
        for child, (place, part) in zip(self.children, self._parts(value, where), strict=True):
            yield from child.flatten(part, place)

    def unflatten(self, leaves: Iterator[Any]) -> Any:
        """The tree with these leaves."""
        if self.kind == "leaf":
            return next(leaves)
        parts = [child.unflatten(leaves) for child in self.children]
        if self.kind == "dict":
            return dict(zip(self.names, parts, strict=True))
        return None if self.kind == "none" else tuple(parts) if self.kind == "tuple" else parts

    def _parts(self, value: Any, where: str) -> list[tuple[str, Any]]:
        if self.kind == "dict":
            given = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
            if not isinstance(value, Mapping) or {*given} != {*self.names}:
                found = sorted(map(str, given)) if isinstance(value, Mapping) else type(value).__name__
                raise CallInputError(f"{where} must be a dict with the keys {sorted(self.names)}, not {found}")
            return [(f"{where}[{name!r}]", given[name]) for name in self.names]
        wanted = tuple if self.kind == "tuple" else list
        if not isinstance(value, wanted) or len(cast("list[Any]", value)) != len(self.children):
            found = f"of {len(cast('list[Any]', value))}" if isinstance(value, wanted) else type(value).__name__
            raise CallInputError(f"{where} must be a {self.kind} of {len(self.children)}, not {found}")
        return [(f"{where}[{index}]", part) for index, part in enumerate(cast("list[Any]", value))]


def read_tree(table: FlatTable | None) -> Tree:
    """Read a `PyTreeDef` from the file. UnsupportedGraphError for a custom node class."""
    if table is None:
        raise InvalidGraphError("The exported function has no structure of arguments or results.")
    number = table.number(_KIND, number_types.Int8Flags)
    if number == len(_KINDS):
        raise UnsupportedGraphError(
            f"The function takes or gives a {table.text(_CUSTOM)!r}; export one that takes tuples, lists and dicts."
        )
    if not 0 <= number < len(_KINDS):
        raise InvalidGraphError(f"The exported function has a tree of the kind {number}, which is unknown.")
    kind = _KINDS[number]
    children = tuple(read_tree(child) for child in table.tables(_CHILDREN))
    names = tuple(table.texts(_NAMES))
    if kind in ("leaf", "none") and children:
        raise InvalidGraphError("The exported function has a tree with something inside an array.")
    if len({*names}) != len(names) or (len(names) != len(children) if kind == "dict" else names):
        raise InvalidGraphError("The exported function has a tree whose names do not fit it.")
    return Tree(kind, children, names)
