"""A graph that fails, made simpler node by node: what hypothesis has left, since the nodes of one activation are drawn
together."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tensorkiln.errors import TensorkilnError
from tensorkiln.expr import to_wire
from tensorkiln.graph import Graph

from .composer import Case

Node = dict[str, Any]

LONGEST_S = 120.0
"""After so long the simplest graph so far is it."""


def simplest(case: Case, problem_of: Callable[[Case], str]) -> tuple[Case, str]:
    """The simplest case found that has a problem, and that problem; `case` has one."""
    ends = time.monotonic() + LONGEST_S
    problem = problem_of(case)
    found = True
    while found:
        found = False
        for simpler in _simpler(case):
            if time.monotonic() > ends:
                return case, problem
            if now := problem_of(simpler):
                case, problem, found = simpler, now, True
                break
    return case, problem


def _simpler(case: Case) -> Iterator[Case]:
    """One way less, then graphs of fewer nodes, the smallest first."""
    for way in case.ways if len(case.ways) > 1 else ():
        yield case._replace(ways=(way,))
    graphs = sorted(_smaller(case.graph), key=lambda graph: len(graph.nodes))
    for graph in graphs:
        symbols = {name: value for name, value in case.symbols.items() if name in graph.symbols}
        yield case._replace(graph=graph, symbols=symbols)


def _smaller(graph: Graph) -> Iterator[Graph]:
    """The graphs that have one output less, an operand for an output, an input for a node, or an operand for a node of
    its type."""
    document: dict[str, Any] = json.loads(graph.to_json())
    nodes: list[Node] = document["nodes"]
    outputs: list[int] = document["output_vars"]
    found: list[tuple[list[Node], list[int]]] = []
    if len(outputs) > 1:
        found += [(nodes, [var for place, var in enumerate(outputs) if place != left]) for left in range(len(outputs))]
    for place, node in enumerate(nodes):
        var, *others = _results(node)
        kind = graph.types[var]
        if node["node"] == "placeholder" or others:
            continue
        shape = [to_wire(dim) for dim in kind.shape]
        given: Node = {"node": "placeholder", "out_var": var, "dtype": kind.dtype.value, "shape": shape}
        if node["node"] not in ("const_scalar", "vconst", "define_var"):
            found.append(([*nodes[:place], given, *nodes[place + 1 :]], outputs))
        operands = graph.nodes[place].operands
        if var in outputs:
            found += [(nodes, [operand if other == var else other for other in outputs]) for operand in operands]
        for operand in operands:
            if graph.types[operand] == kind:
                renamed = {var: operand}
                found.append(([_renamed(other, renamed) for other in nodes], [renamed.get(v, v) for v in outputs]))
    for changed, wanted in found:
        made = _validated(document, changed, wanted)
        if made is not None and len(made.nodes) + len(made.output_vars) < len(nodes) + len(outputs):
            yield made


def _results(node: Node) -> list[int]:
    """The vars of a node, which are several for a loop."""
    return node["output_vars"] if node["node"] == "while" else [node["out_var"]]


def _renamed(node: Node, names: Mapping[int, int]) -> Node:
    """The node with other operands."""
    changed = dict(node)
    for field, value in node.items():
        if field.endswith("_var") and field != "out_var":
            changed[field] = names.get(value, value)
        elif field in ("in_vars", "deps"):
            changed[field] = [names.get(var, var) for var in value]
    return changed


def _validated(document: Mapping[str, Any], nodes: list[Node], outputs: list[int]) -> Graph | None:
    """What the outputs need of the nodes, if that is a graph."""
    needed = set(outputs)
    kept: list[Node] = []
    for node in reversed(nodes):
        if needed.intersection(_results(node)):
            kept.append(node)
            fields = (value for field, value in node.items() if field.endswith("_var"))
            needed.update(value for value in fields if isinstance(value, int))
            needed.update(node.get("in_vars", ()))
    kept.reverse()
    inputs = [node["out_var"] for node in kept if node["node"] == "placeholder"]
    # A symbol is kept where a dim still names it; which ones do is for the validation to say.
    text = json.dumps(kept)
    symbols = [record for record in document["symbolic_vars"] if f'"{record["name"]}"' in text]
    types = {str(var): document["vars_metadata"][str(var)] for node in kept for var in _results(node)}
    parameters = [var for var in document.get("parameter_vars", ()) if var in inputs]
    changed = {
        "nodes": kept,
        "input_vars": inputs,
        "parameter_vars": parameters,
        "output_vars": outputs,
        "symbolic_vars": symbols,
    }
    try:
        return Graph.model_validate({**document, **changed, "vars_metadata": types})
    except TensorkilnError:
        return None
