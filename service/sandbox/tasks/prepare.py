"""What the body of a compile request asks for: its graph, targets and options."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from service.sandbox.child import Outlet
from service.sandbox.frames import Message
from tensorkiln.canonical import Canonical, canonicalize, graph_json

from .envelope import OF_COMPILE, parse_envelope, parse_options, parse_targets
from .sent_graph import SentGraph, sent_graph


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
