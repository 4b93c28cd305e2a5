"""Displays of graphs: a line, and HTML for notebooks."""

from __future__ import annotations

from typing import Any

from .html_table import html_table
from .signature import signature_of_graph


def graph_line(graph: Any) -> str:
    """One line with the graph's signature and its number of nodes."""
    return f"<Graph {signature_of_graph(graph)}, {_count(len(graph.nodes), 'node')}>"


def graph_html(graph: Any) -> str:
    """HTML of the graph's signature, and of its nodes in order."""
    signature = signature_of_graph(graph)
    rows = [
        (index, node.node, _operation(node), _vars(node.operands), _made(graph, node))
        for index, node in enumerate(graph.nodes)
    ]
    columns = ("node", "kind", "op", "reads", "makes")
    return signature.html() + html_table(_count(len(graph.nodes), "node"), columns, rows)


def _operation(node: object) -> str:
    return str(getattr(node, "op", getattr(node, "reduce_op_kind", "")))


def _made(graph: Any, node: object) -> str:
    var = getattr(node, "out_var", None)
    kind = graph.types.get(var) if isinstance(var, int) else None
    return "" if kind is None else f"v{var}: {kind.dtype}[{', '.join(map(str, kind.shape))}]"


def _vars(operands: tuple[int, ...]) -> str:
    return ", ".join(f"v{var}" for var in operands)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
