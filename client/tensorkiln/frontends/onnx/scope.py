"""Translation of nodes in order, with the values that they read and write by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np
from google.protobuf import json_format, text_format
from google.protobuf.message import DecodeError
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, checker, numpy_helper, parser

from ...errors import InvalidGraphError, LimitExceededError, UnsupportedGraphError
from ...expr import Expr, depth
from ...limits import MAX_EXPRESSION_DEPTH, MAX_NODES
from .folding import fold, is_foldable
from .functions import MAX_DEPTH, Body, Functions, bound
from .naming import named
from .node import Node
from .operators import DOMAINS, results_of
from .parameters import InnerParameters, Parameters
from .signature import check_inputs
from .value import Absent, Held, Host

OWN_DOMAINS = ("", "ai.onnx")
UNREADABLE = (
    *(DecodeError, json_format.Error, text_format.Error, checker.ValidationError, parser.ParseError),
    *(ValueError, TypeError, KeyError, NotImplementedError),
)
"""Exceptions of protobuf and onnx for invalid models, and for tensors of unknown types."""
MAX_RUN = 2 * MAX_NODES
"""The most nodes processed; many are folded and add none to the graph."""


@dataclass
class Work:
    """The number of nodes processed, counting all loop turns and function calls."""

    nodes: int = 0
    kept: dict[int, tuple[object, Mapping[str, Held]]] = field(
        default_factory=dict[int, tuple[object, Mapping[str, Held]]]
    )

    def once(self, proto: object, values: Callable[[], Mapping[str, Held]]) -> Mapping[str, Held]:
        """The initializers of a graph, read once, so that all turns of a body share its weights."""
        if id(proto) not in self.kept:
            # Keep the object alive, since its id is the key.
            self.kept[id(proto)] = (proto, values())
        return self.kept[id(proto)][1]

    def one_more(self, name: str) -> None:
        """Count a node. LimitExceededError above `MAX_RUN`, since nested calls can grow exponentially."""
        self.nodes += 1
        if self.nodes > MAX_RUN:
            raise LimitExceededError(
                f"{name}: the functions and loops of the model unroll to more than {MAX_RUN} nodes",
                limit="nodes",
                maximum=MAX_RUN,
                actual=self.nodes,
            )


class OuterScope(Protocol):
    """The interface of the outer graph for a subgraph."""

    def value(self, name: str) -> Held | Absent | None:
        """The value of that name, in this scope or an outer one."""
        ...


@dataclass(frozen=True)
class _Captured:
    """The outer graph of a subgraph that becomes a region: its values are captured as inputs."""

    scope: OuterScope
    parameters: InnerParameters

    def value(self, name: str) -> Held | Absent | None:
        found = self.scope.value(name)
        return None if found is None else self.parameters.captured(found)


@dataclass
class Scope:
    """Values by name, in the model's graph, a subgraph of it or the body of a function.

    A subgraph can read values of the outer scope, a function only its inputs. `opsets` gives the version of each
    domain, `attributes` are those of the call of this body, `path` is the prefix of its nodes' names.
    """

    parameters: Parameters
    functions: Functions
    opsets: Mapping[str, int]
    values: dict[str, Held | Absent]
    around: OuterScope | None = None
    attributes: Mapping[str, AttributeProto] = field(default_factory=dict[str, AttributeProto])
    path: str = ""
    depth: int = 0
    read: frozenset[str] = frozenset()
    work: Work = field(default_factory=Work)

    def run(self, nodes: Sequence[NodeProto], results: Sequence[str]) -> None:
        """Translate the nodes; `results` are the names that are read afterwards."""
        self.read = self.read.union(results, _names_read(nodes))
        for position, proto in enumerate(nodes):
            name = f"{self.path}{proto.name or f'#{position}'}"
            if self._is_constant(proto):
                self.values |= self.work.once(proto, partial(self._constant, proto, name))
            else:
                self._run(bound(proto, self.attributes), name)

    def value(self, name: str) -> Held | Absent | None:
        """The value of that name, in this scope or an outer one."""
        found = self.values.get(name)
        return self.around.value(name) if found is None and self.around is not None else found

    def output(self, name: str) -> Held:
        """The value of an output. UnsupportedGraphError when there is none."""
        found = self.value(name)
        if found is None or isinstance(found, Absent):
            raise UnsupportedGraphError(found.reason if found is not None else f"no node writes the output {name!r}")
        return found

    def run_subgraph(self, graph: GraphProto, inputs: Sequence[Held], path: str) -> list[Held]:
        """Translate a subgraph of a node in place, and return its outputs."""
        return self._run_graph(graph, inputs, path, self, self.parameters)

    def run_inside(
        self, graph: GraphProto, inputs: Sequence[Held], path: str, parameters: InnerParameters
    ) -> list[Held]:
        """Translate a subgraph that becomes a region, and return its outputs; `inputs` are values of the region."""
        return self._run_graph(graph, inputs, path, _Captured(self, parameters), parameters)

    def _run_graph(
        self, graph: GraphProto, inputs: Sequence[Held], path: str, around: OuterScope, parameters: Parameters
    ) -> list[Held]:
        if self.depth >= MAX_DEPTH:
            raise UnsupportedGraphError(f"{path}: more than {MAX_DEPTH} graphs and functions lie within one another")
        if len(inputs) != len(graph.input):
            raise InvalidGraphError(f"{path}: the subgraph takes {len(graph.input)} inputs, {len(inputs)} are given")
        values: dict[str, Held | Absent] = {
            **self.work.once(graph, lambda: {tensor.name: initializer(tensor) for tensor in graph.initializer})
        }
        values |= {entry.name: value for entry, value in zip(graph.input, inputs, strict=True)}
        inner = replace(
            self,
            parameters=parameters,
            values=values,
            around=around,
            path=f"{path}/",
            depth=self.depth + 1,
            read=frozenset(),
        )
        names = [entry.name for entry in graph.output]
        inner.run(graph.node, names)
        return [inner.output(name) for name in names]

    def _is_constant(self, proto: NodeProto) -> bool:
        """Whether the node is ONNX's own `Constant` with a literal value, which is the same in every run."""
        is_own = proto.op_type == "Constant" and proto.domain in OWN_DOMAINS and proto not in self.functions
        return is_own and not any(attribute.ref_attr_name for attribute in proto.attribute)

    def _constant(self, proto: NodeProto, name: str) -> Mapping[str, Held]:
        self._run(proto, name)
        return {output: self.output(output) for output in proto.output}

    def _run(self, proto: NodeProto, name: str) -> None:
        self.work.one_more(name)
        inputs = [self._input(entry, f"{proto.op_type} {name}") for entry in proto.input]
        domain = proto.domain if proto.domain not in OWN_DOMAINS else ""
        opset = self.opsets.get(domain, 1)
        is_own = proto.op_type in DOMAINS.get(domain, ()) and proto not in self.functions
        node = Node(proto, name, opset, inputs, self.parameters, self.read, self.run_subgraph, self.run_inside)
        results: Sequence[Held | Absent]
        if is_own:
            # Overflow and division by zero in a fold give the operator's own results: no warnings.
            with named(node), np.errstate(all="ignore"):
                check_inputs(node)
                results = fold(node) if is_foldable(node) else results_of(node)
                _refuse_deep(node, results)
            node.refuse_unread()
        else:
            results = self._call(proto, node)
        for place, output in enumerate(proto.output):
            if place < len(results):
                self.values[output] = results[place]
            elif output:
                self.values[output] = Absent(f"output {place} of {node.op} {node.name} is not supported")

    def _call(self, proto: NodeProto, node: Node) -> Sequence[Held | Absent]:
        with named(node):
            body = self.functions.body(proto, self.opsets, node.inputs)
        if body is None:
            node.fail(f"the operator {proto.domain or 'ai.onnx'}.{proto.op_type} is not supported")
        if self.depth >= MAX_DEPTH:
            node.fail(f"more than {MAX_DEPTH} graphs and functions lie within one another")
        if len(node.inputs) > len(body.inputs):
            node.invalid(f"{len(node.inputs)} inputs are given, at most {len(body.inputs)} are taken")
        given = {attribute.name: attribute for attribute in proto.attribute}
        unknown = given.keys() - body.known
        if unknown:
            node.fail(f"the attribute {min(unknown)} is not supported in opset {node.opset}")
        # An input that the caller omits is absent in the body.
        values: dict[str, Held | Absent] = dict.fromkeys(body.inputs, _NOTHING)
        values |= {name: value for name, value in zip(body.inputs, node.inputs, strict=False) if value is not None}
        inner = replace(
            self,
            opsets=body.opsets,
            values=values,
            around=None,
            attributes={**body.attributes, **given},
            path=f"{node.name}/",
            depth=self.depth + 1,
            read=frozenset(),
        )
        inner.run(body.nodes, [name for place, name in enumerate(body.outputs) if node.is_read(place)])
        return _outputs(body, node, inner)

    def _input(self, name: str, reader: str) -> Held | None:
        found = self.value(name) if name else None
        if not name or found is _NOTHING:
            return None
        if isinstance(found, Absent):
            raise UnsupportedGraphError(f"{found.reason}, but {reader} reads it")
        if found is None:
            raise InvalidGraphError(f"{reader} reads {name!r}, which no earlier node writes")
        return found


_NOTHING = Absent("an input is missing")


def _refuse_deep(node: Node, results: Sequence[Held | Absent]) -> None:
    """UnsupportedGraphError for dimension expressions that loops have nested too deeply."""
    for result in results:
        if isinstance(result, np.ndarray) and result.dtype == object:
            dims = [dim for dim in result.reshape(-1).tolist() if isinstance(dim, Expr)]
            if any(depth(dim) > MAX_EXPRESSION_DEPTH for dim in dims):
                node.fail(f"a dimension is an expression of more than {MAX_EXPRESSION_DEPTH} levels")


def _outputs(body: Body, node: Node, inner: Scope) -> list[Held | Absent]:
    """The outputs of a body; unread ones are absent."""
    unread = Absent("nothing reads it")
    return [inner.output(name) if node.is_read(place) else unread for place, name in enumerate(body.outputs)]


def _names_read(nodes: Sequence[NodeProto]) -> set[str]:
    """The names that the nodes and their subgraphs read."""
    found: set[str] = set()
    for node in nodes:
        found.update(node.input)
        for attribute in node.attribute:
            for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                found |= _names_read(graph.node) | {entry.name for entry in graph.output}
    return found


def initializer(tensor: TensorProto) -> Host:
    """The array of an initializer. InvalidGraphError when it cannot be read."""
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except UNREADABLE as error:
        raise InvalidGraphError(f"the initializer {tensor.name!r} cannot be read: {error}") from error
