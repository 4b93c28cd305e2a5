"""Walks over the node graph of a kernel: order, rewriting, identity."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from hashlib import sha256
from typing import Any

from pydantic import BaseModel

from .launch.nodes import LaunchNode

Rule = Callable[[LaunchNode], LaunchNode | None]
"""A replacement for a node, or None to keep it."""


def toposort(root: LaunchNode) -> Iterator[LaunchNode]:
    """Every node object under `root` once, operands before their users, `root` last."""
    seen: set[int] = set()
    pending: list[tuple[LaunchNode, bool]] = [(root, False)]
    while pending:
        node, is_ready = pending.pop()
        if is_ready:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            pending.append((node, True))
            pending.extend((source, False) for source in reversed(node.sources))


def rewrite(root: LaunchNode, rule: Rule) -> LaunchNode:
    """The graph with `rule` applied to every node, after its operands were rewritten."""
    rewritten: dict[int, LaunchNode] = {}
    for node in toposort(root):
        update = {field.name: _rebuilt(getattr(node, field.name), rewritten) for field in fields(node)}
        changed = {name: value for name, value in update.items() if value is not getattr(node, name)}
        candidate = replace(node, **changed) if changed else node
        rewritten[id(node)] = rule(candidate) or candidate
    return rewritten[id(root)]


def _rebuilt(value: Any, rewritten: dict[int, LaunchNode]) -> Any:
    if isinstance(value, LaunchNode):
        return rewritten[id(value)]
    if isinstance(value, tuple):
        entries = tuple(_rebuilt(entry, rewritten) for entry in value)  # type: ignore[reportUnknownArgumentType]
        same = all(new is old for new, old in zip(entries, value, strict=True))  # type: ignore[reportUnknownArgumentType]
        return value if same else entries  # type: ignore[reportUnknownVariableType]
    return value


def content_digest(root: LaunchNode) -> str:
    """The SHA-256 of the graph's content: equal for equal graphs, independent of the sharing of nodes."""
    number: dict[int, int] = {}
    numbers: dict[str, int] = {}
    for node in toposort(root):
        text = repr([type(node).__name__, *(_spelling(getattr(node, field.name), number) for field in fields(node))])
        number[id(node)] = numbers.setdefault(text, len(numbers))
    return sha256("\n".join(numbers).encode()).hexdigest()


def _spelling(value: Any, number: dict[int, int]) -> str:
    if isinstance(value, LaunchNode):
        return f"#{number[id(value)]}"
    if isinstance(value, tuple):
        return f"({','.join(_spelling(entry, number) for entry in value)})"  # type: ignore[reportUnknownArgumentType]
    return value.model_dump_json() if isinstance(value, BaseModel) else f"{type(value).__name__} {value!r}"
