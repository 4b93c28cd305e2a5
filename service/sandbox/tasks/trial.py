"""A self-test of the service: read, compile and answer a request of its own."""

from __future__ import annotations

import json

from service.action import Action
from service.sandbox.child import Outlet
from service.sandbox.frames import Message

from .compile_action import compile_action
from .prepare import prepare

TARGET = "cpu"


def trial(request: Message, outlet: Outlet) -> Message:
    """Compile a small fixed graph and return the answer of the task `compile`."""
    del request
    from passes.warm_up import graph

    body = json.dumps({"graph": json.loads(graph().to_json()), "target": TARGET}).encode()
    prepared = prepare(Message({"build_id": "", "salt": ""}, {"body": body}), outlet)
    action = Action.from_components(prepared.header["actions"][0])
    header = {
        "digest": action.digest,
        "target": action.target,
        "options": {**action.options, "dump_stages": False},
        "provenance": {"build_id": "", "versions": {}},
        "cache": {"status": "miss", "reason": "first request"},
    }
    return compile_action(Message(header, dict(prepared.parts)), outlet)
