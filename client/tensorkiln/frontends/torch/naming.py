"""Names of outputs by their path in the module's results: `logits`, `1`, `states.0.key`."""

from __future__ import annotations

from collections.abc import Iterator

from .exported import Tree


def leaf_names(tree: Tree | None, count: int) -> list[str]:
    """A name for each leaf in order; a single result is `output`. Without a matching tree, leaves are numbered."""
    if tree is None or tree.leaves != count:
        return [str(place) for place in range(count)] if count != 1 else ["output"]
    return [name or "output" for name in _names(tree, "")]


def _names(tree: Tree, path: str) -> Iterator[str]:
    if tree.kind == "leaf":
        yield path
        return
    keys = tree.context or tuple(range(len(tree.children)))
    for key, child in zip(keys, tree.children, strict=True):
        yield from _names(child, f"{path}.{key}" if path else str(key))


def distinct(names: list[str]) -> list[str]:
    """The names, made unique by appending `'` to repeated ones."""
    found: list[str] = []
    for name in names:
        while name in found:
            name += "'"
        found.append(name)
    return found
