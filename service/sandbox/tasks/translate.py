"""The graph of a StableHLO module, or of lines of the builder."""

from __future__ import annotations

import json

from service.sandbox.child import Outlet
from service.sandbox.frames import Message

from .envelope import OF_TRANSLATE, parse_envelope
from .sent_graph import sent_graph


def translate(request: Message, outlet: Outlet) -> Message:
    """Translate the part `body`: a module in `stablehlo` with optional `dims` and `shapes`, or a text in `builder`.

    The part `answer` is a `Translation` with a valid graph.
    """
    outlet.stage("parse")
    fields = parse_envelope(request.parts["body"], *OF_TRANSLATE)
    outlet.stage("translate")
    sent = sent_graph(fields)
    places = json.dumps(list(sent.places), separators=(",", ":"))
    return Message({}, {"answer": b'{"graph":%b,"places":%b}' % (sent.graph.to_json().encode(), places.encode())})
