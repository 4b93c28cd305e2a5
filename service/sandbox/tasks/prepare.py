"""Tasks that read a request: what it asks to compile, its parts, a report of its graph, or a translation to one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from service.sandbox.child import Outlet
from service.sandbox.frames import Message
from service.wire.body import MAX_BATCH
from service.wire.validation import ValidationReport, ValueReport
from tensorkiln.canonical import Canonical, canonicalize, graph_digest, graph_json
from tensorkiln.errors import LimitExceededError, RequestError
from tensorkiln.graph import Graph
from tensorkiln.nodes import SymVar

from .envelope import (
    OF_COMPILE,
    OF_TRANSLATE,
    OF_VALIDATE,
    SentGraph,
    check_fields,
    parse_envelope,
    parse_object,
    parse_options,
    parse_targets,
    sent_graph,
)

REQUESTS: Final = "requests"


def prepare(request: Message, outlet: Outlet) -> Message:
    """Validate the part `body`.

    The answer: the header has `targets`, `options` without `dump_stages`, and `dump_stages`; the parts are `graph`
    (canonical, JSON) and `renaming` (for the task `render`).
    """
    outlet.stage("parse")
    fields = parse_envelope(request.parts["body"], *OF_COMPILE)
    targets = parse_targets(fields["target"])
    options = parse_options(fields.get("options", {}))
    outlet.stage("validate")
    sent = sent_graph(fields)
    outlet.stage("canonicalize")
    canonical = canonicalize(sent.graph)
    return Message(
        {
            "targets": [target.model_dump(mode="json") for target in targets],
            "options": options.model_dump(mode="json", exclude={"dump_stages"}),
            "dump_stages": options.dump_stages,
        },
        {"graph": graph_json(canonical), "renaming": _renaming(sent, canonical)},
    )


def _renaming(sent: SentGraph, canonical: Canonical) -> bytes:
    return json.dumps(
        {
            "name": sent.graph.name,
            "symbols": dict(canonical.symbols),
            "vars": dict(canonical.vars),
            "nodes": list(canonical.nodes),
            **_places(sent, canonical.nodes),
        },
        separators=(",", ":"),
    ).encode()


def _places(sent: SentGraph, nodes: Sequence[int]) -> dict[str, Any]:
    """The sources of the canonical nodes: the distinct places, an index per node, and the request's field."""
    if not sent.places:
        return {}
    texts = {text: at for at, text in enumerate(dict.fromkeys(sent.places))}
    placed = [texts[sent.places[node]] for node in nodes]
    return {"places": list(texts), "placed": placed, "field": sent.field}


class _Batch(msgspec.Struct):
    requests: list[msgspec.Raw]


def split(request: Message, outlet: Outlet) -> Message:
    """Split the part `body`, an object whose `requests` are bodies of compile requests.

    The answer's header has `refused`: by position, a problem for each request with wrong fields. Every other request is
    a part named by its position, with the bytes as sent, so that its hash equals that of the same request sent alone.
    """
    outlet.stage("parse")
    body = request.parts["body"]
    wanted = check_fields(parse_object(body), (REQUESTS,))[REQUESTS]
    if not isinstance(wanted, list) or not wanted:
        raise RequestError(f"{REQUESTS} is not a list of requests.", pointers=[f"/{REQUESTS}"])
    requests: list[Any] = wanted
    if len(requests) > MAX_BATCH:
        raise LimitExceededError(
            f"The batch has {len(requests)} requests; the limit is {MAX_BATCH}.",
            pointers=[f"/{REQUESTS}"],
            limit="batch",
            maximum=MAX_BATCH,
            actual=len(requests),
        )
    refused: dict[str, Any] = {}
    parts: dict[str, bytes] = {}
    texts = msgspec.json.decode(body, type=_Batch).requests
    for position, (each, text) in enumerate(zip(requests, texts, strict=True)):
        try:
            check_fields(each, *OF_COMPILE)
        except RequestError as error:
            refused[str(position)] = error.to_problem()
        else:
            parts[str(position)] = bytes(text)
    return Message({"refused": refused}, parts)


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
