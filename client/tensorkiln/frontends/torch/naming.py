"""Names of outputs by where they lie in what the module returns: `logits`, `1`, `states.0.key`."""

from __future__ import annotations

from collections.abc import Iterator

from .exported import Tree


def leaf_names(tree: Tree | None, count: int) -> list[str]:
    """A name for each leaf in order; that of a single result is `output`. Without a tree they are numbered."""
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
    """The names, with a mark behind those that came before."""
    found: list[str] = []
    for name in names:
        while name in found:
            name += "'"
        found.append(name)
    return found
