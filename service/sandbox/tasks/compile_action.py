"""Compile one canonical graph for one target, or time its candidate schedules; and the answers made of programs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from service.sandbox.child import Outlet
from service.sandbox.frames import Message
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tensorkiln.spec import CacheInfo, CompiledProgram, Tuning
from tensorkiln.target import Target

STORED = CacheInfo(status="hit", reason="stored program")


def compile_action(request: Message, outlet: Outlet) -> Message:
    """Compile the canonical graph in the part `graph`; the header has `digest`, `target`, `options` and `provenance`.

    The answer's header has `artifacts` (SHA-256s), `stages` (name to SHA-256 of its dump) and `seconds` (by stage); its
    parts are `program` (a `CompiledProgram` in canonical names, identical byte for byte in every compile of the
    action), `artifact:<sha256>` and `dump:<stage>`. The part `tuning`, if present, picks the schedules. With the part
    `renaming` and the header's `cache`, as for the task `render`, the answer also has the part `answer`.
    """
    header = request.header
    # Imported here as well as by the fork server, so that a sandbox without the compiler can run the other tasks.
    from passes.compile import CompileRequest, compile_request

    outlet.stage("load")
    tuning = Tuning.model_validate_json(request.parts["tuning"]) if "tuning" in request.parts else None
    compilation = compile_request(
        CompileRequest(
            graph=Graph.model_validate_json(request.parts["graph"]),
            target=Target.model_validate(header["target"]),
            options=CompileOptions.model_validate(header["options"]),
            measured={} if tuning is None else tuning.measured,
        ),
        on_stage=outlet.stage,
        pool=outlet.pool,
    )
    dumps = {name: text.encode() for name, text in compilation.dumps.items()}
    program = compilation.program
    isolation = outlet.level.value
    provenance = program.provenance.model_copy(update={**header["provenance"], "isolation": isolation})
    bare = program.model_copy(
        update={"digest": header["digest"], "cache": STORED, "provenance": provenance, "tuning": tuning}
    )
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in dumps.items()}
    seconds = {stage.name: stage.seconds for stage in program.stages}
    told = bare.with_stages(seconds, digests)
    outlet.stage("return")
    parts = {f"artifact:{digest}": content for digest, content in compilation.artifacts.items()}
    parts |= {f"dump:{name}": content for name, content in dumps.items()}
    parts["program"] = bare.with_stages({}, {}).model_dump_json().encode()
    if "renaming" in request.parts:
        parts["answer"] = answer([told], [CacheInfo(**header["cache"])], request.parts["renaming"])
    return Message(
        {
            "artifacts": sorted(compilation.artifacts),
            "stages": digests,
            "seconds": seconds,
        },
        parts,
    )


def measure(request: Message, outlet: Outlet) -> Message:
    """The request is that of the task `compile`. The part `program` of the answer is a `Tuning`, as JSON."""
    header = request.header
    # Imported here, so that a sandbox without the compiler can run the other tasks.
    from passes.compile import CompileRequest
    from passes.timing import tune

    outlet.stage("load")
    tuning = tune(
        CompileRequest(
            graph=Graph.model_validate_json(request.parts["graph"]),
            target=Target.model_validate(header["target"]),
            options=CompileOptions.model_validate({**header["options"], "dump_stages": False}),
        ),
        outlet.stage,
    )
    outlet.stage("return")
    header = {"artifacts": [], "stages": {}, "seconds": {}}
    return Message(header, {"program": tuning.model_dump_json().encode()})


def render(request: Message, outlet: Outlet) -> Message:
    """Render the parts `program:0`, `program:1`, … with the names in the part `renaming`.

    The header has one entry per program in `caches`, `seconds` (by stage) and `stages` (SHA-256 of dumps by stage). The
    answer has the part `answer`.
    """
    outlet.stage("render")
    header = request.header
    caches = [CacheInfo(**cache) for cache in header["caches"]]
    stored = [request.parts[f"program:{position}"] for position in range(len(caches))]
    programs = [
        CompiledProgram.model_validate_json(text).with_stages(seconds, dumps)
        for text, seconds, dumps in zip(stored, header["seconds"], header["stages"], strict=True)
    ]
    return Message({}, {"answer": answer(programs, caches, request.parts["renaming"])})


def answer(programs: Sequence[CompiledProgram], caches: Sequence[CacheInfo], renaming: bytes) -> bytes:
    """The answer to a request for programs, given in canonical names."""
    names = json.loads(renaming)
    renamed = (_renamed(program, names) for program in programs)
    texts = [each.model_copy(update={"cache": cache}) for each, cache in zip(renamed, caches, strict=True)]
    return b'{"programs":[%b]}' % b",".join(each.model_dump_json().encode() for each in texts)


def _renamed(program: CompiledProgram, names: dict[str, Any]) -> CompiledProgram:
    variables = {int(canonical): var for canonical, var in names["vars"].items()}
    renamed = program.renamed(names["symbols"], variables, names["nodes"])
    return renamed.model_copy(update={"name": names["name"]})
