"""The warm-up of a fork server that compiles nothing: a request is read once, and the compiler is not loaded."""

from __future__ import annotations

import json
import socket

from service.sandbox.child import Outlet
from service.sandbox.frames import Message

from .prepare import prepare
from .validate import validate

_GRAPH = {
    "schema": 1,
    "name": "",
    "nodes": [
        {"node": "placeholder", "out_var": 0, "dtype": "float32", "shape": [4, "n"]},
        {"node": "unary", "op": "neg", "in_var": 0, "out_var": 1, "dtype": "float32"},
    ],
    "input_vars": [0],
    "output_vars": [1],
    "symbolic_vars": [{"name": "n", "min_val": 1, "max_val": 8}],
}


def rehearse() -> None:
    """Read a request and validate a graph, so that no job is the first in its process to do so."""
    listener, speaker = socket.socketpair()
    with listener, speaker:
        outlet = Outlet(speaker)
        body = json.dumps({"graph": _GRAPH, "target": "cpu:x86-64-v3"}).encode()
        prepare(Message({"build_id": "", "salt": ""}, {"body": body}), outlet)
        validate(Message({}, {"body": json.dumps({"graph": _GRAPH}).encode()}), outlet)
