"""Place values inside other values, from the buffer views and cats of a graph function."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from tensorkiln import expr
from tensorkiln.expr import Dim

from ..values import Value


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a buffer in a shared storage: its byte `offset`, and the number and size in bytes of the storage."""

    storage: int
    offset: Dim
    size: Dim


class Placements:
    """Collects which value lies in which other value, and at which byte offset."""

    def __init__(self) -> None:
        self._holders: dict[Value, tuple[Value, Dim]] = {}

    def view(self, value: Value) -> None:
        """Record a `buffer_view`."""
        (base,) = value.operands
        self._holders[value] = (base, expr.mul(value.dim("offset"), base.dtype.itemsize))

    def join(self, value: Value) -> None:
        """Record a `cat` of one axis, whose parts are computed in their places in the result.

        If a part already lies at its offset in a storage as large as the whole, the whole takes that storage.
        """
        offset: Dim = 0
        parts: list[tuple[Value, Dim]] = []
        for part in value.operands:
            root, inside = self._located(part)
            if inside == offset and root.size_bytes == value.size_bytes:
                self._holders[value] = (root, 0)
            else:
                assert (inside, root.size_bytes) == (0, part.size_bytes), (
                    "a part that is computed in its place is whole"
                )
                parts.append((root, offset))
            offset = expr.add(offset, part.size_bytes)
        for root, place in parts:
            self._holders[root] = (value, place)

    def places(self, buffers: Mapping[Value, int]) -> dict[int, Place]:
        """The places of all buffers that share a storage with another buffer; storages are numbered from 0."""
        located = {value: self._located(value) for value in buffers}
        members: dict[Value, list[int]] = defaultdict(list)
        for value, number in buffers.items():
            members[located[value][0]].append(number)
        shared = {root: number for number, root in enumerate(root for root in members if len(members[root]) > 1)}
        return {
            number: Place(shared[root], offset, root.size_bytes)
            for value, number in buffers.items()
            for root, offset in (located[value],)
            if root in shared
        }

    def _located(self, value: Value) -> tuple[Value, Dim]:
        """The outermost value that contains `value`, and the byte offset in it."""
        offset: Dim = 0
        while value in self._holders:
            value, inside = self._holders[value]
            offset = expr.add(offset, inside)
        return value, offset
