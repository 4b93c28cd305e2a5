"""Turn the body of a compile request into its actions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from service.action import Action
from service.sandbox.child import Outlet
from service.sandbox.frames import Message
from tensorkiln.canonical import Canonical, canonicalize, graph_json
from tensorkiln.spec.abi import ABI_VERSION

from .envelope import OF_COMPILE, parse_envelope, parse_options, parse_targets
from .sent_graph import SentGraph, sent_graph


def prepare(request: Message, outlet: Outlet) -> Message:
    """Validate the part `body` and compute the actions to compile.

    The header gives `build_id` and `salt`. The answer: `actions` (the components of each, in the order of the targets)
    and `dump_stages`; the parts `graph` (canonical, JSON) and `renaming` (for the task `render`).
    """
    outlet.stage("parse")
    fields = parse_envelope(request.parts["body"], *OF_COMPILE)
    targets = parse_targets(fields["target"])
    options = parse_options(fields.get("options", {}))
    outlet.stage("validate")
    sent = sent_graph(fields)
    graph = sent.graph
    outlet.stage("canonicalize")
    canonical = canonicalize(graph)
    text = graph_json(canonical)
    digest = sha256(text).hexdigest()
    actions = [
        Action(
            abi=ABI_VERSION,
            build_id=request.header["build_id"],
            graph=digest,
            options=options.model_dump(mode="json", exclude={"dump_stages"}),
            salt=request.header["salt"],
            schema=graph.schema_version,
            target=target.model_dump(mode="json"),
        )
        for target in targets
    ]
    return Message(
        {"actions": [action.components for action in actions], "dump_stages": options.dump_stages},
        {"graph": text, "renaming": _renaming(sent, canonical)},
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
