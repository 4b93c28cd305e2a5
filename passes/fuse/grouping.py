"""Group stored values into kernels: a value joins the kernel of its latest producer if it can be computed row by row.

The rows are the leading loops that all roots of a kernel share. A root may join if everything that it reads of the
kernel's other roots lies in its own row. So a reduction and its consumers (softmax, a normalisation, the bias and
activation after a product) are one pass over memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from tensorkiln import expr
from tensorkiln.schedule import BarrierReason

from ..loops.accesses import loads
from ..loops.contraction import multiplies_matrix
from ..loops.domain import Domain, domain_of, extent_of
from ..loops.index_space import IndexSpace
from ..loops.scalar_dag import Interner, Load, Node
from ..trace.depth_parts import domain_of_contraction
from ..trace.tracer import Tracer
from ..trace.traces import TRACES
from ..values import Function, Value, users_of, values_behind
from .assembly import Assemblies
from .chains import Chains
from .groups import Group, Grouping, is_within_row, with_bases
from .materialise import OPAQUE, lives_in_memory
from .updates_last import updates_last
from .windows import AS_IT_IS, Windows

MAX_ROW_POINTS = 65536
"""Points of one row of a kernel with several loop nests: its intermediate values should stay in the L2 cache.

Rows of a symbolic size count as the shortest: in kernels of their own, the stages of rows of 1000 take 1.4 to 1.7 times
as long, those of rows of a million 0.7 to 1 times.
"""
MIN_ROWS_TO_SHARE = 16
SMALL_ROW = 4096
SMALL_KERNEL = 16384
MAX_ROOTS = 24
MAX_OPERANDS = 96


class Grouper:
    """Finds kernels for the stored values, which are given in order; every kernel reads only earlier ones.

    `host` are the values in memory before any kernel runs, except arguments; `live` are all that the results need;
    `prepared` depend on parameters alone and get kernels of their own. Without `fusion` every stored value has its own
    kernel and storage. With `chains` a product may share the kernel of an earlier product whose rows it consumes.
    """

    def __init__(
        self,
        function: Function,
        live: Sequence[Value],
        stored: Sequence[Value],
        host: Sequence[Value],
        prepared: Collection[Value],
        fusion: bool,
        chains: bool,
    ) -> None:
        self.function, self.stored, self.prepared = function, stored, prepared
        self.fusion, self.chains = fusion, chains
        self.space = IndexSpace(function.symbols)
        self.nodes = Interner()
        in_memory = [*function.arguments, *host, *stored]
        self.numbers: dict[Value, int] = {value: number for number, value in enumerate(in_memory)}
        # A constant that a loop or a result needs in memory is written by a kernel, but read by none: kernels that run
        # before that one, such as those of prepared values, may use it, too.
        self.readable = {value: number for value, number in self.numbers.items() if not _is_written(value)}
        self.groups: list[Group] = []
        self.home: dict[Value, int] = {}
        self.reducing: dict[Value, list[int]] = defaultdict(list)
        self.apart: dict[tuple[Value, Value], BarrierReason] = {}
        self.elements: dict[Value, Node] = {}
        users = users_of(live)
        self.windows = Windows(function, users, self.space, self.nodes, self.numbers)
        self.assemblies = Assemblies(self.windows, users, self.home)

    def run(self) -> Grouping:
        """Group the values; once."""
        for number, root in enumerate(self.stored):
            self._add(root, f"g{number}_")
        self._drop_dead()
        if self.chains:
            windows, assemblies = self.windows.found, self.assemblies.found
            bases = {window.base for window in windows.values()}.union(*(each.bases for each in assemblies.values()))
            kept = frozenset(bases) | frozenset(self.function.results)
            self.groups = Chains(
                self.groups, self.elements, self.windows, self.space, self.nodes, kept, self.prepared
            ).merged()
        groups = updates_last(self.groups, self.windows.found, self.assemblies.found)
        return Grouping(groups, self.windows.found, self.assemblies.found, self.apart)

    def _add(self, root: Value, prefix: str) -> None:
        if root.kind in OPAQUE:
            reads = {operand for operand in root.operands if operand in self.numbers}
            self._keep_apart(root, reads, {}, "whole-buffers")
            self._open(Group([root], 0, {}, {root: reads}, is_opaque=True, is_prepared=root in self.prepared))
            return
        assembly = self.assemblies.find(root) if self.fusion else None
        if assembly is not None:
            self.home[root] = max(self.home[base] for base in assembly.bases)
            return
        domain = domain_of(root, self.space, prefix)
        tracer = Tracer(self.space, self.readable, TRACES, self.nodes)
        element = self.elements[root] = tracer.computed(root, domain)
        if self.fusion and root.kind != "reduce_axis" and self.windows.find(root, domain, element):
            return
        combine = root.text("reduce_op_kind") if root.kind == "reduce_axis" else None
        trace = partial(tracer.computed, root)
        contracted = domain_of_contraction(domain, combine, element, self.nodes, self.space, trace)
        is_contraction = contracted is not None
        reads = self._reads(element)
        unread = {self.windows.base(value) for value in values_behind(root, self.readable.__contains__)} - reads.keys()
        is_prepared = root in self.prepared
        producers = {self.home[value] for value in reads if value in self.home}
        reasons: dict[int, BarrierReason] = dict.fromkeys(producers, "later-kernel")
        reasons |= {n: "prepared" for n in producers if self.groups[n].is_prepared != is_prepared}
        producers = {number for number in producers if self.groups[number].is_prepared == is_prepared}
        if not self.fusion or is_contraction:
            reasons |= dict.fromkeys(producers, "contraction" if self.fusion else "fusion-off")
        else:
            after = max((self.home[value] for value in reads if value in self.home), default=-1)
            beside = self._beside(root, domain, reads, is_prepared, after)
            for number in (max(producers, default=None), beside):
                if number is None:
                    continue
                rows = self._shared_rows(self.groups[number], root, domain, reads)
                if not isinstance(rows, int):
                    reasons[number] = rows
                    continue
                if number == beside and rows < self.groups[number].rows:
                    continue
                reasons.pop(number, None)
                self._keep_apart(root, reads, reasons)
                self._join(number, Group([root], rows, {root: domain}, {root: set(reads)}, {root: unread}))
                return
        self._keep_apart(root, reads, reasons)
        opened = Group([root], len(domain.parallel), {root: domain}, {root: set(reads)}, {root: unread})
        opened.is_contraction, opened.is_prepared = is_contraction, is_prepared
        self._open(opened)

    def _keep_apart(
        self,
        root: Value,
        reads: Collection[Value],
        reasons: Mapping[int, BarrierReason],
        otherwise: BarrierReason | None = None,
    ) -> None:
        """Record why `root` is not in the kernels that compute its operands; `reasons` are by kernel number."""
        for value in reads:
            reason = reasons.get(self.home[value]) or otherwise if value in self.home else None
            if reason is not None:
                self.apart[value, root] = reason

    def _open(self, group: Group) -> None:
        self._settle(group, len(self.groups))
        self.groups.append(group)

    def _join(self, number: int, joining: Group) -> None:
        target = self.groups[number]
        target.take(joining)
        target.rows = joining.rows
        self._settle(joining, number)

    def _settle(self, group: Group, number: int) -> None:
        self.home |= dict.fromkeys(group.roots, number)
        for root in group.roots:
            if root.kind == "reduce_axis":
                for value in group.reads[root]:
                    self.reducing[value].append(number)

    def _beside(
        self, root: Value, domain: Domain, reads: Collection[Value], is_prepared: bool, after: int
    ) -> int | None:
        """The first kernel after number `after` that reduces the same rows of a value that `root` also reduces."""
        if root.kind != "reduce_axis":
            return None
        numbers = {number for value in reads for number in self.reducing[value] if number > after}
        for number in sorted(numbers):
            group = self.groups[number]
            walked = (group.domains[other] for other in group.roots if not group.reads[other].isdisjoint(reads))
            if group.is_prepared == is_prepared and any(domain.walks_as(other) for other in walked):
                return number
        return None

    def _drop_dead(self) -> None:
        """Drop the roots that are not results and of which no kernel reads an element."""
        windows, assemblies = self.windows.found, self.assemblies.found
        needed = with_bases(self.function.results, windows, assemblies)
        for group in reversed(self.groups):
            for root in reversed(group.roots):
                if root in needed or root.kind in AS_IT_IS:
                    needed |= with_bases((root, *group.reads[root]), windows, assemblies)
            group.roots = [root for root in group.roots if root in needed]
        self.groups = [group for group in self.groups if group.roots]

    def _reads(self, element: Node) -> dict[Value, list[Load]]:
        """The loads of a root's `element` by the value that they read."""
        reads: dict[Value, list[Load]] = defaultdict(list)
        for load in loads((element,), self.nodes):
            value, located = self.windows.located(load)
            reads[value].append(located)
        return reads

    def _shared_rows(
        self, target: Group, root: Value, domain: Domain, reads: Mapping[Value, list[Load]]
    ) -> int | BarrierReason:
        """How many leading loops a root can share with all roots of `target`, or why it should not join."""
        if target.is_opaque:
            return "whole-buffers"
        if len(target.roots) >= MAX_ROOTS or len(target.all_reads() | set(reads)) > MAX_OPERANDS:
            return "kernel-size"
        most = 0
        leader = target.domains[target.roots[0]].parallel
        for mine, theirs in zip(domain.parallel, leader[: target.rows], strict=False):
            if mine.extent != theirs.extent:
                break
            most += 1
        if target.is_contraction:
            whole = most == len(leader) == len(domain.loops)
            if not whole:
                return "other-loops"
            return most if self._is_aligned(target, domain, reads, most) else "beyond-row"
        refused: BarrierReason = "beyond-row"
        for rows in range(most, -1, -1):
            if not self._is_aligned(target, domain, reads, rows):
                continue
            if self._is_profitable(target, root, domain, rows):
                return rows
            if rows:
                refused = "row-size"
        return refused

    def _is_aligned(self, target: Group, domain: Domain, reads: Mapping[Value, list[Load]], rows: int) -> bool:
        for value, found in reads.items():
            if value in target.domains:
                if not all(is_within_row(load, value, domain, rows, self.space) for load in found):
                    return False
            elif value in self.assemblies.found and self.groups[self.home[value]] is target:
                # An assembled value is complete only when the whole kernel has run.
                return False
        return True

    def _is_profitable(self, target: Group, root: Value, domain: Domain, rows: int) -> bool:
        domains = [*target.domains.values(), domain]
        points = [extent_of([*d.parallel[rows:], *d.reduction]) for d in domains]
        largest = max(map(self.space.largest, points))
        if largest <= 1:
            return True
        same = all([loop.extent for loop in d.loops] == [loop.extent for loop in domain.loops] for d in domains)
        if same and rows == len(domain.parallel):
            return True
        if all(rows == len(d.parallel) for d in domains):
            return True
        if any(self._multiplies_matrix(*each, rows) for each in (*target.domains.items(), (root, domain))):
            return False
        count = extent_of(domain.parallel[:rows])
        fewest = expr.bounds(count, self.space.symbols)[0]
        if largest <= SMALL_ROW:
            return fewest >= MIN_ROWS_TO_SHARE or not isinstance(count, int) or largest * count <= SMALL_KERNEL
        shortest = max(-self.space.largest(expr.neg(each)) for each in points)
        return shortest <= MAX_ROW_POINTS and (fewest >= MIN_ROWS_TO_SHARE or not isinstance(count, int))

    def _multiplies_matrix(self, root: Value, domain: Domain, rows: int) -> bool:
        """Whether a root multiplies a row with a matrix, which a kernel of its own does in half the time."""
        combine = root.text("reduce_op_kind") if root.kind == "reduce_axis" else None
        return multiplies_matrix(domain, rows, combine, self.elements[root], self.nodes)


def _is_written(value: Value) -> bool:
    """Whether the value is a constant that is in memory only because a kernel writes it there."""
    return value.kind in ("const_scalar", "vconst") and not lives_in_memory(value)
