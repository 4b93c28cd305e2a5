"""The warm-up of a fork server that compiles nothing: requests are read, and the compiler is not loaded."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Final

import dialect
import stablehlo
from service.sandbox.child import Outlet
from service.sandbox.frames import Message

from .compile_action import STORED, render
from .prepare import prepare, validate

_SAMPLE: Final = Path(__file__).with_name("sample.json")
"""A request, and the program that it was once compiled to."""
_TRANSLATING: Final = (dialect, stablehlo)
"""Loaded here because a confined task can read only packages that are loaded; neither imports anything else."""


def rehearse() -> None:
    """Read a request, validate a graph, and write an answer, so that no task is the first in its process to do so."""
    sample = json.loads(_SAMPLE.read_bytes())
    request, program = sample["request"], json.dumps(sample["program"]).encode()
    listener, speaker = socket.socketpair()
    with listener, speaker:
        outlet = Outlet(speaker)
        body = json.dumps(request).encode()
        prepared = prepare(Message({}, {"body": body}), outlet)
        validate(Message({}, {"body": json.dumps({"graph": request["graph"]}).encode()}), outlet)
        parts = {"renaming": prepared.parts["renaming"], "program:0": program}
        render(Message({"caches": [STORED.model_dump()], "seconds": [{}], "stages": [{}]}, parts), outlet)
