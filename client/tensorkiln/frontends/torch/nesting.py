"""Flattening of nested arguments, and nesting of flat results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...errors import CallInputError
from .exported import Tree


def leaves(tree: Tree, value: Any, path: str = "") -> Iterator[Any]:
    """The leaves of `value` in order. CallInputError, with the path, when it has another structure."""
    if tree.kind == "leaf":
        yield value
        return
    where = path or "the arguments"
    if tree.kind == "dict":
        if not isinstance(value, Mapping) or set(value) != set(tree.context):
            raise CallInputError(f"{where}: a dict with the keys {list(tree.context)} is taken")
        parts = [value[key] for key in tree.context]
    elif not isinstance(value, list | tuple) or len(value) != len(tree.children):
        raise CallInputError(f"{where}: a sequence of {len(tree.children)} is taken")
    else:
        parts = list(value)
    keys = tree.context or tuple(range(len(parts)))
    for key, child, part in zip(keys, tree.children, parts, strict=True):
        yield from leaves(child, part, f"{path}.{key}" if path else str(key))


def nested(tree: Tree, values: Iterator[Any]) -> Any:
    """Nest the leaves `values` in the structure of `tree`."""
    if tree.kind == "leaf":
        return next(values)
    parts = [nested(child, values) for child in tree.children]
    if tree.make is not None:
        return tree.make(parts)
    if tree.kind == "dict":
        return dict(zip(tree.context, parts, strict=True))
    return parts if tree.kind == "list" else tuple(parts)


def as_given(tree: Tree, names: Sequence[str], args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """The arguments split into positional and keyword ones as at the export: a tuple and a dict.

    CallInputError when one is missing, given twice or unknown.
    """
    positional, keywords = tree.children
    count = len(positional.children)
    expected = [*names[len(args) : count], *keywords.context]
    if len(args) > count or set(named) != set(expected):
        raise CallInputError(
            f"the module takes the arguments {[*names[:count], *keywords.context] or count}, given are {len(args)} "
            f"by position and {sorted(named)} by name"
        )
    later = [named[name] for name in names[len(args) : count]]
    return (*args, *later), {name: named[name] for name in keywords.context}
