"""Render stored programs as the answer to one request, with the names of its graph."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from service.sandbox.child import Outlet
from service.sandbox.frames import Message
from service.wire.answers import SAME_REQUEST
from tensorkiln.spec import CacheInfo, CompiledProgram


def render(request: Message, outlet: Outlet) -> Message:
    """Render the parts `program:0`, `program:1`, … with the names in the part `renaming`.

    The header has one entry per program in `caches`, `seconds` (by stage) and `stages` (SHA-256 of dumps by stage). The
    answer's parts are `answer`, and `repeat`: the answer to the same request next time.
    """
    outlet.stage("render")
    header = request.header
    caches = [CacheInfo(**cache) for cache in header["caches"]]
    stored = [request.parts[f"program:{position}"] for position in range(len(caches))]
    programs = [
        CompiledProgram.model_validate_json(text).with_stages(seconds, dumps)
        for text, seconds, dumps in zip(stored, header["seconds"], header["stages"], strict=True)
    ]
    return Message({}, answers(programs, caches, request.parts["renaming"]))


def answers(programs: Sequence[CompiledProgram], caches: Sequence[CacheInfo], renaming: bytes) -> dict[str, bytes]:
    """The parts `answer` and `repeat` for programs in canonical names."""
    names = json.loads(renaming)
    renamed = [_renamed(program, names) for program in programs]
    return {
        "answer": _join([_dump(program, cache) for program, cache in zip(renamed, caches, strict=True)]),
        "repeat": _join([_dump(program, SAME_REQUEST) for program in renamed]),
    }


def _renamed(program: CompiledProgram, names: dict[str, Any]) -> CompiledProgram:
    variables = {int(canonical): var for canonical, var in names["vars"].items()}
    renamed = program.renamed(names["symbols"], variables, names["nodes"])
    return renamed.model_copy(update={"name": names["name"]})


def _dump(program: CompiledProgram, cache: CacheInfo) -> bytes:
    return program.model_copy(update={"cache": cache}).model_dump_json().encode()


def _join(programs: list[bytes]) -> bytes:
    return b'{"programs":[%b]}' % b",".join(programs)
