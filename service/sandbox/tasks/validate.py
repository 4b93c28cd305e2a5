"""Validate a graph and report its sizes, types and constraints; or make one of a module or of lines of the builder."""

from __future__ import annotations

import json

from service.sandbox.child import Outlet
from service.sandbox.frames import Message
from service.wire.validation import ValidationReport, ValueReport
from tensorkiln.canonical import canonicalize, graph_digest
from tensorkiln.graph import Graph
from tensorkiln.nodes import SymVar

from .envelope import OF_TRANSLATE, OF_VALIDATE, parse_envelope
from .sent_graph import sent_graph


def validate(request: Message, outlet: Outlet) -> Message:
    """Validate the graph, module or text in the part `body`. The part `answer` is a `ValidationReport`."""
    outlet.stage("parse")
    fields = parse_envelope(request.parts["body"], *OF_VALIDATE)
    outlet.stage("validate")
    graph = sent_graph(fields).graph
    outlet.stage("canonicalize")
    canonical = canonicalize(graph)
    report = ValidationReport(
        name=graph.name,
        digest=graph_digest(canonical),
        nodes=len(graph.nodes),
        live_nodes=len(canonical.nodes),
        symbols=tuple(SymVar(name=name, min_val=low, max_val=high) for name, (low, high) in graph.symbols.items()),
        inputs=tuple(_value(graph, var) for var in graph.input_vars),
        outputs=tuple(_value(graph, var) for var in graph.output_vars),
        constraints=graph.constraints,
    )
    return Message({}, {"answer": report.model_dump_json().encode()})


def _value(graph: Graph, var: int) -> ValueReport:
    found = graph.types[var]
    return ValueReport(var=var, dtype=found.dtype, shape=found.shape, device=found.device)


def translate(request: Message, outlet: Outlet) -> Message:
    """Translate the module or the text in the part `body`. The part `answer` is a `Translation` with a valid graph."""
    outlet.stage("parse")
    fields = parse_envelope(request.parts["body"], *OF_TRANSLATE)
    outlet.stage("translate")
    sent = sent_graph(fields)
    places = json.dumps(list(sent.places), separators=(",", ":"))
    return Message({}, {"answer": b'{"graph":%b,"places":%b}' % (sent.graph.to_json().encode(), places.encode())})
