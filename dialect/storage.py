"""Track the value of each var while a graph is read: turns writable storage into immutable values.

The wire format has two ways to write to a var again: an `assign`, and a node that defines a var declared by a `buffer`.
Everything that shares the storage sees the write, which is the chain of `buffer_view` nodes above and below the var,
and nothing else: every other node has a value of its own. So a write gives the var a new value, splices it into the
buffers that the var is a view of, and drops the views of all of them, which are made again at their next read.
"""

from __future__ import annotations

from typing import Protocol

from .mlir import ir


class Contents(Protocol):
    """Reads and writes storage as ops."""

    def contents(self, var: int) -> ir.Value:
        """The contents of an unwritten buffer."""
        ...

    def view(self, var: int, base: ir.Value) -> ir.Value:
        """The view `var` of `base`."""
        ...

    def splice(self, var: int, base: ir.Value, view: ir.Value) -> ir.Value:
        """`base` after its view `var` was given the value `view`."""
        ...


class Storage:
    """The current value of each var.

    The writer of the ops is passed in and not kept: a reference cycle would keep an MLIR context alive until the
    garbage collector runs.
    """

    def __init__(self) -> None:
        self._values: dict[int, ir.Value] = {}
        self._bases: dict[int, int] = {}
        self._taken: dict[int, list[int]] = {}

    def share(self, var: int, base: int) -> None:
        """Make `var` a view of `base`."""
        self._bases[var] = base

    def read(self, var: int, ops: Contents) -> ir.Value:
        """The current value of a var."""
        if var in self._values:
            return self._values[var]
        views = [var]
        while views[-1] not in self._values and views[-1] in self._bases:
            views.append(self._bases[views[-1]])
        base = views.pop()
        if base not in self._values:
            self._values[base] = ops.contents(base)
        for view in reversed(views):
            self._values[view] = ops.view(view, self._values[base])
            self._taken.setdefault(base, []).append(view)
            base = view
        return self._values[var]

    def write(self, var: int, value: ir.Value, ops: Contents) -> None:
        """Give a var a value or new contents, and update all storage that it is a view of."""
        while var in self._bases:
            base = self._bases[var]
            spliced = ops.splice(var, self.read(base, ops), value)
            self._replace(var, value)
            var, value = base, spliced
        self._replace(var, value)

    def _replace(self, var: int, value: ir.Value) -> None:
        self._values[var] = value
        forgotten = self._taken.pop(var, [])
        while forgotten:
            view = forgotten.pop()
            self._values.pop(view, None)
            forgotten.extend(self._taken.pop(view, ()))
