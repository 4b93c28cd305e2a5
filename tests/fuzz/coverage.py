"""What has been composed and compiled so far: node kinds and ops, pairs of them, dtypes, strategies, ways, refusals."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from tensorkiln.graph import Graph
from tensorkiln.nodes import AnyNode

from .composer import Case
from .verdict import Verdict

_PAIRS_SHOWN = 40


@dataclass(slots=True)
class Coverage:
    """Counts by name, of graphs in the first group and of nodes, kernels, programs, refusals and elements after it."""

    graphs: Counter[str] = field(default_factory=Counter[str])
    nodes: Counter[str] = field(default_factory=Counter[str])
    pairs: Counter[str] = field(default_factory=Counter[str])
    dtypes: Counter[str] = field(default_factory=Counter[str])
    strategies: Counter[str] = field(default_factory=Counter[str])
    ways: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    elements: Counter[str] = field(default_factory=Counter[str])
    milliseconds: Counter[str] = field(default_factory=Counter[str])

    def add(self, family: str, case: Case, verdict: Verdict) -> None:
        graph = case.graph
        self.graphs.update([family, "symbolic" if case.symbols else "static", "all"])
        self.nodes.update(map(op_of, graph.nodes))
        self.pairs.update(_pairs(graph))
        self.dtypes.update({graph.types[node.out_var].dtype.value for node in graph.nodes if node.out_var is not None})
        for name in ("strategies", "ways", "refused", "elements", "milliseconds"):
            getattr(self, name).update(getattr(verdict, name))

    def update(self, other: Coverage) -> None:
        for group in fields(self):
            getattr(self, group.name).update(getattr(other, group.name))

    def to_json(self) -> str:
        return json.dumps({group.name: getattr(self, group.name) for group in fields(self)})

    @classmethod
    def from_json(cls, text: str) -> Coverage:
        return cls(**{name: Counter(counts) for name, counts in json.loads(text).items()})

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        total = max(self.elements.total(), 1)
        for name in ("graphs", "ways", "strategies", "dtypes", "nodes", "refused"):
            yield f"{name}: {_listed(getattr(self, name))}"
        yield f"pairs of adjacent ops: {len(self.pairs)} of {self.pairs.total()}; {_listed(self.pairs, _PAIRS_SHOWN)}"
        yield "elements of results: " + ", ".join(f"{n} {c / total:.1%}" for n, c in self.elements.most_common())
        yield "seconds: " + ", ".join(f"{name} {spent // 1000}" for name, spent in self.milliseconds.most_common())


def _listed(counts: Counter[str], most: int | None = None) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common(most)) or "none"


def op_of(node: AnyNode) -> str:
    """The kind of a node, with its op where the kind has several."""
    op = getattr(node, "op", None) or getattr(node, "reduce_op_kind", None)
    return node.node if op is None else f"{node.node}.{op}"


def _pairs(graph: Graph) -> Iterator[str]:
    makers = {node.out_var: op_of(node) for node in graph.nodes}
    for node in graph.nodes:
        for operand in node.operands:
            maker = makers.get(operand)
            if maker not in (None, "placeholder", "const_scalar", "vconst"):
                yield f"{maker} > {op_of(node)}"
