"""Stored programs to the answer of one request, in the names of its graph."""

from __future__ import annotations

import json
from typing import Any

from service.sandbox.child import Outlet
from service.sandbox.frames import Message
from tensorkiln.spec import CacheInfo, CompiledProgram

REPEATED = CacheInfo(status="hit", reason="same request")


def render(request: Message, outlet: Outlet) -> Message:
    """The header gives `caches`, one `CacheInfo` per program; the parts `renaming` and `program:0`, `program:1`, ….

    The answer's parts are `answer`, and `repeat`: what the same request gets the next time.
    """
    outlet.stage("render")
    renaming = json.loads(request.parts["renaming"])
    caches = [CacheInfo(**cache) for cache in request.header["caches"]]
    programs = [_program(request.parts[f"program:{position}"], renaming) for position in range(len(caches))]
    answers = {
        "answer": _join([_dump(program, cache) for program, cache in zip(programs, caches, strict=True)]),
        "repeat": _join([_dump(program, REPEATED) for program in programs]),
    }
    return Message({}, answers)


def _program(stored: bytes, renaming: dict[str, Any]) -> CompiledProgram:
    variables = {int(canonical): var for canonical, var in renaming["vars"].items()}
    program = CompiledProgram.model_validate_json(stored).renamed(renaming["symbols"], variables, renaming["nodes"])
    return program.model_copy(update={"name": renaming["name"]})


def _dump(program: CompiledProgram, cache: CacheInfo) -> bytes:
    return program.model_copy(update={"cache": cache}).model_dump_json().encode()


def _join(programs: list[bytes]) -> bytes:
    return b'{"programs":[%b]}' % b",".join(programs)
