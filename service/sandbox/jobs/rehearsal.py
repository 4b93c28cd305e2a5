"""The fork server's warm-up: every kind of work that a request needs, once, on a graph of our own."""

from __future__ import annotations

import json
import socket

from service.sandbox.child import Outlet
from service.sandbox.frames import Message

from .compile_action import STORED
from .prepare import prepare
from .render import render
from .validate import validate


def rehearse() -> None:
    """Compile, read a request, and write its answer, so that no job is the first in its process to do so."""
    # Imported here, so that a sandbox without the compiler can import the other jobs.
    from passes.warm_up import graph, warm_up

    compilation, *_ = warm_up()
    wire = json.loads(graph().to_json())
    listener, speaker = socket.socketpair()
    with listener, speaker:
        outlet = Outlet(speaker)
        body = json.dumps({"graph": wire, "target": compilation.program.target.model_dump(mode="json")})
        prepared = prepare(Message({"build_id": "", "salt": ""}, {"body": body.encode()}), outlet)
        validate(Message({}, {"body": json.dumps({"graph": wire}).encode()}), outlet)
        program = compilation.program.model_dump_json().encode()
        renaming = prepared.parts["renaming"]
        render(Message({"caches": [STORED.model_dump()]}, {"renaming": renaming, "program:0": program}), outlet)
