"""The graph of a StableHLO module, or of lines of the builder."""

from __future__ import annotations

import json

from service.sandbox.child import Outlet
from service.sandbox.frames import Message

from .envelope import OF_TRANSLATE, parse_envelope
from .sent_graph import sent_graph


def translate(request: Message, outlet: Outlet) -> Message:
    """The part `body` has a module of `stablehlo`, and maybe `dims` and `shapes`, or a text of `builder`; the part
    `answer` is a `Translation`.

    The graph is one that is valid.
    """
    outlet.stage("parse")
    fields = parse_envelope(request.parts["body"], *OF_TRANSLATE)
    outlet.stage("translate")
    sent = sent_graph(fields)
    places = json.dumps(list(sent.places), separators=(",", ":"))
    return Message({}, {"answer": b'{"graph":%b,"places":%b}' % (sent.graph.to_json().encode(), places.encode())})
