"""The answers about a valid graph: a report, or its translation from another form."""

from __future__ import annotations

from typing import Any, Literal

from tensorkiln.dtypes import DType
from tensorkiln.expr import Expr as Expr  # WireDim names it in a string
from tensorkiln.expr import WireDim
from tensorkiln.nodes import SymVar
from tensorkiln.spec.constraint import WireConstraint

from .answers import Answer


class ValueReport(Answer):
    """An input or an output of a graph, as inferred."""

    var: int
    dtype: DType
    shape: tuple[WireDim, ...]
    device: str | None = None


class ValidationReport(Answer):
    """A valid graph. `digest` is the same for every graph that differs only in names and in the order of its nodes.

    `live_nodes` are those that an output depends on. `constraints` must hold at every call.
    """

    valid: Literal[True] = True
    name: str
    digest: str
    nodes: int
    live_nodes: int
    symbols: tuple[SymVar, ...]
    inputs: tuple[ValueReport, ...]
    outputs: tuple[ValueReport, ...]
    constraints: tuple[WireConstraint, ...]


class Translation(Answer):
    """`graph` is the JSON of a graph: the arguments of `@main` are its inputs, the results its outputs, in order.

    `places` says of each node of the graph where in the module's program the operation stood that it is for, or the
    line and column of the text; a node may have an empty one.
    """

    graph: dict[str, Any]
    places: tuple[str, ...]
