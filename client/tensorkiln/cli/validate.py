"""`kiln validate`: is this a graph, and what does it take and give?"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache

from rich.table import Table

from ..expr import to_text
from ..graph import Graph
from ..request import graph_json
from ..sdk import Client
from .dims import parse_dims
from .model import read_given
from .options import Dim, GraphFile, TimeoutS, Url
from .report import output, reported


def validate(graph: GraphFile, dim: Dim = None, url: Url = None, timeout: TimeoutS = None) -> None:
    """Check a graph: its structure, limits, order, shapes and dtypes.

    Needs a service for StableHLO and jax.export only. With --url, that service checks the graph too.
    """
    with reported() as step, ExitStack() as stack:

        @cache
        def connect() -> Client:
            return stack.enter_context(Client(url, timeout_s=timeout))

        step(f"reading {graph}")
        source = read_given(graph, parse_dims(dim or []), connect)[0].graph
        step("checking")
        checked = source if isinstance(source, Graph) else Graph.model_validate_json(graph_json(source))
        if url:
            step(f"asking {url}")
            connect().validate(source)
    console = output()
    console.print(f"{graph} is a graph of {len(checked.nodes)} nodes")
    console.print(_interface(checked))
    for constraint in checked.constraints:
        sign = "=" if constraint.kind == "eq" else ">="
        relation = f"{to_text(constraint.left)} {sign} {to_text(constraint.right)}"
        console.print(f"checked at every call: {relation} ({constraint.message}, {constraint.pointer})")


def _interface(graph: Graph) -> Table:
    table = Table("role", "var", "dtype", "shape")
    for role, members in (("input", graph.input_vars), ("output", graph.output_vars)):
        for var in members:
            kind = graph.types[var]
            table.add_row(role, str(var), str(kind.dtype), _shape(kind.shape))
    for name, (low, high) in graph.symbols.items():
        table.add_row("symbol", name, "", f"{low} to {high}")
    return table


def _shape(shape: Sequence[object]) -> str:
    return f"({', '.join(map(str, shape))})"
