"""Tasks by which a service tests itself: what works, and what confinement refuses."""

from __future__ import annotations

import json
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from service.sandbox.canary import Victim, make_attempts
from service.sandbox.child import Outlet
from service.sandbox.frames import Message

from .compile_action import compile_action
from .prepare import prepare

TARGET = "cpu"


def ping(request: Message, outlet: Outlet) -> Message:
    """Return the request's header."""
    return Message(request.header)


def canary(request: Message, outlet: Outlet) -> Message:
    """The header has the fields of a `Victim`; the answer's header has those of a `Findings`."""
    asked = request.header
    victim = Victim(Path(asked["planted"]), asked["pid"], asked["file_bytes"], asked["memory_bytes"])
    return Message(asdict(make_attempts(victim)))


def trial(request: Message, outlet: Outlet) -> Message:
    """Compile a small fixed graph and return the answer of the task `compile`."""
    from passes.warm_up import graph

    body = json.dumps({"graph": json.loads(graph().to_json()), "target": TARGET}).encode()
    prepared = prepare(Message({}, {"body": body}), outlet)
    header = {
        "digest": sha256(prepared.parts["graph"]).hexdigest(),
        "target": prepared.header["targets"][0],
        "options": prepared.header["options"],
        "provenance": {"build_id": "", "versions": {}},
        "cache": {"status": "miss", "reason": "first request"},
    }
    return compile_action(Message(header, dict(prepared.parts)), outlet)
