"""Which stored values share a kernel, and where the values without a kernel lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tensorkiln import expr
from tensorkiln.expr import Dim
from tensorkiln.schedule import BarrierReason

from ..loops.domain import Domain
from ..loops.index_space import IndexSpace, linear_form
from ..loops.scalar_dag import Load
from ..values import Value
from .assembly import Assembly
from .windows import Window


@dataclass(slots=True)
class Group:
    """The roots of one kernel, the number of leading loops that they share, and the values in memory that each root
    reads.

    An opaque op reads its operands; every other root reads the bases of its windows. `unread` are values in memory that
    are operands of the ops behind a root, but of which it loads no element. The roots of a kernel are all prepared, or
    none is.
    """

    roots: list[Value]
    rows: int
    domains: dict[Value, Domain]
    reads: dict[Value, set[Value]]
    unread: dict[Value, set[Value]] = field(default_factory=dict[Value, set[Value]])
    is_contraction: bool = False
    is_opaque: bool = False
    is_prepared: bool = False

    def take(self, other: Group) -> None:
        """Take over the roots of another group."""
        self.roots += other.roots
        self.domains |= other.domains
        self.reads |= other.reads
        self.unread |= other.unread

    def all_reads(self) -> set[Value]:
        """The values in memory that some root reads."""
        return set[Value]().union(*(self.reads[root] for root in self.roots))

    def all_unread(self) -> set[Value]:
        """The values in memory that are operands of the ops behind the roots, but that no root reads."""
        return set[Value]().union(*(self.unread.get(root, ()) for root in self.roots)) - self.all_reads()


@dataclass(frozen=True, slots=True)
class Grouping:
    """The kernels in order, and the stored values without one: windows of other values, and values assembled from
    parts.

    `apart` gives for a pair of values, of which the second reads the first, why they are not in one kernel.
    """

    groups: list[Group]
    windows: Mapping[Value, Window]
    assemblies: Mapping[Value, Assembly]
    apart: Mapping[tuple[Value, Value], BarrierReason]


def is_within_row(load: Load, value: Value, domain: Domain, rows: int, space: IndexSpace) -> bool:
    """Whether the load addresses an element of the current row."""
    names = [loop.name for loop in domain.parallel[:rows]]
    form = linear_form(load.address, names)
    if form is None:
        return False
    row_size, strides = row_layout(value.shape, [loop.extent for loop in domain.parallel[:rows]])
    if strides is None or tuple(form[1]) != strides:
        return False
    return not load.conditions and space.is_within(form[0], row_size)


def with_bases(
    values: Iterable[Value], windows: Mapping[Value, Window], assemblies: Mapping[Value, Assembly]
) -> set[Value]:
    """`values`, and all values in memory that they lie in or are assembled from."""
    found: set[Value] = set()
    stack = list(values)
    while stack:
        value = stack.pop()
        if value in found:
            continue
        found.add(value)
        if value in windows:
            stack.append(windows[value].base)
        elif value in assemblies:
            stack.extend(assemblies[value].bases)
    return found


def row_layout(shape: Sequence[Dim], rows: Sequence[Dim]) -> tuple[Dim, tuple[Dim, ...] | None]:
    """`(elements of a row, strides of the row loops)` of a row-major value whose leading dimensions are the rows.

    The strides are None if the leading dimensions, ignoring those of size 1, are not the rows.
    """
    extents = [extent for extent in shape if extent != 1]
    if tuple(extents[: len(rows)]) != tuple(rows):
        return 0, None
    strides = tuple(expr.product(extents[at + 1 :]) for at in range(len(rows)))
    return expr.product(extents[len(rows) :]), strides
