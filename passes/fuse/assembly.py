"""Joined values that need no kernel: each part is computed at its place in the whole.

The parts of a cat along the leading axis follow one another in memory. So do the kept parts of the target and the
source of an assignment to a range. If kernels store the parts anyway, they can store them at their place in the whole,
and no copy is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tensorkiln import expr
from tensorkiln.expr import Dim

from ..values import Value
from .joining import is_aligned, takes_memory_early
from .windows import KEEPING, NOT_OURS, Window, Windows

MAX_PARTS = 64
"""Most parts of one storage, nested parts included: the steps that write to it are compared pairwise."""

Piece: TypeAlias = "tuple[Window | None, Dim]"
"""Where consecutive elements of a value are (None: not in memory), and their size in bytes."""


@dataclass(frozen=True, slots=True)
class Assembly:
    """A value whose `parts`, of `sizes` bytes, follow one another.

    Each part is either a whole value that is computed in its place here, or kept: a window of an older value of the
    same size that is dead, at the same offset.
    """

    parts: tuple[Window, ...]
    sizes: tuple[Dim, ...]

    @property
    def bases(self) -> tuple[Value, ...]:
        """The values that must have been computed for this value to be in memory."""
        return tuple(dict.fromkeys(part.base for part in self.parts))


class Assemblies:
    """The assembled values found so far; `home` is the number of the kernel that computes a value."""

    def __init__(self, windows: Windows, users: Mapping[Value, Sequence[Value]], home: Mapping[Value, int]) -> None:
        self.windows, self.users, self.home = windows, users, home
        self.found: dict[Value, Assembly] = {}
        self._placed: set[Value] = set()
        self._counts: dict[Value, int] = {}
        self._begun: dict[Value, int] = {}

    def find(self, value: Value) -> Assembly | None:
        """How the stored value `value` is assembled; None if it needs a kernel."""
        pieces = [piece for piece in self._pieces(value) or () if piece[1] != 0]
        parts = [window for window, _ in pieces if window is not None]
        if len(parts) < len(pieces):
            return None
        fresh: list[Value] = []
        kept: set[Value] = set()
        offset: Dim = 0
        for window, size in zip(parts, (size for _, size in pieces), strict=True):
            if window.offset == offset and _are_alike(window.base, value):
                kept.add(window.base)
            elif (window.offset, window.base.size_bytes) == (0, size) and is_aligned(offset):
                fresh.append(window.base)
            else:
                return None
            offset = expr.add(offset, size)
        if not self._may_place(value, fresh, kept):
            return None
        self._placed |= {*fresh, *kept}
        self._counts[value] = self._count((*fresh, *kept))
        self._begun[value] = self._begin((*fresh, *kept))
        self.found[value] = Assembly(tuple(parts), tuple(size for _, size in pieces))
        return self.found[value]

    def _pieces(self, value: Value) -> list[Piece] | None:
        """The pieces of `value`, in order; None if it is not joined along memory."""
        joined = value
        while joined.kind not in ("cat", "assign"):
            if len(joined.operands) != 1 or joined.kind not in KEEPING:
                return None
            (joined,) = joined.operands
            if joined in self.windows.numbers:
                return None
        if joined is not value:
            outer = self.windows.traced_to(value, joined)
            if outer is None or outer.base is not joined or not outer.is_all_of(value):
                return None
        return list(self._parts_of_cat(joined) if joined.kind == "cat" else self._parts_of_assign(joined)) or None

    def _parts_of_cat(self, cat: Value) -> Iterator[Piece]:
        if expr.product(cat.shape[: cat.int("axis") % len(cat.shape)]) != 1:
            return
        for part in cat.operands:
            inner = None if part in self.windows.numbers else self._pieces(part)
            if inner is not None:
                yield from inner
            elif part.size_bytes != 0:
                yield self.windows.place_of(part), part.size_bytes

    def _parts_of_assign(self, assign: Value) -> Iterator[Piece]:
        target, source = assign.operands
        limits, place = assign.fields["range"], self.windows.place_of(target)
        if limits is None or place is None or not place.is_all_of(target):
            return
        begin, end = (limit * target.dtype.itemsize for limit in limits)
        yield place, begin
        yield self.windows.place_of(source), end - begin
        yield Window(place.base, end), expr.sub(target.size_bytes, end)

    def _may_place(self, value: Value, fresh: Sequence[Value], kept: set[Value]) -> bool:
        """Whether kernels can store `fresh` in the place of `value`, over the older value in `kept`, if any."""
        if not fresh or len(set(fresh)) < len(fresh) or len(kept) > 1:
            return False
        if not all(self._is_free(part) for part in (*fresh, *kept)) or self._count((*fresh, *kept)) > MAX_PARTS:
            return False
        if kept:
            first = self._begin(fresh)
            return all(self.home[old] < first and self._is_read_before(old, first, value) for old in kept)
        begun = [(self._begin([part]), part.size_bytes) for part in fresh]
        return value in self.windows.results or not takes_memory_early(begun)

    def _is_free(self, part: Value) -> bool:
        """Whether a kernel computes `part` and may store it anywhere."""
        is_any_byte = part.dtype.is_bool and part.kind in NOT_OURS
        return part in self.home and part not in self._placed and part not in self.windows.results and not is_any_byte

    def _is_read_before(self, old: Value, kernel: int, value: Value) -> bool:
        """Whether all readers of `old` except `value` have run when `kernel` starts."""
        seen: set[Value] = {value}
        stack = [old]
        while stack:
            for user in self.users[stack.pop()]:
                if user in seen:
                    continue
                seen.add(user)
                if user not in self.windows.numbers:
                    stack.append(user)
                elif self.home.get(user, kernel) >= kernel:
                    return False
        return True

    def _count(self, parts: Sequence[Value]) -> int:
        return sum(self._counts.get(part, 1) for part in parts)

    def _begin(self, parts: Sequence[Value]) -> int:
        return min(self._begun.get(part, self.home[part]) for part in parts)


def _are_alike(base: Value, value: Value) -> bool:
    """Whether both have the same number of elements and the same item size."""
    return base.dtype.itemsize == value.dtype.itemsize and base.size_bytes == value.size_bytes
