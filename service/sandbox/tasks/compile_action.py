"""Compile one canonical graph for one target, or time its candidate schedules."""

from __future__ import annotations

import hashlib

from service.sandbox.child import Outlet
from service.sandbox.frames import Message
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tensorkiln.spec import CacheInfo, Tuning
from tensorkiln.target import Target

from .render import answers

STORED = CacheInfo(status="hit", reason="stored program")


def compile_action(request: Message, outlet: Outlet) -> Message:
    """Compile the canonical graph in the part `graph`; the header has `digest`, `target`, `options` and `provenance`.

    The answer's header has `artifacts` (SHA-256s), `stages` (name to SHA-256 of its dump) and `seconds` (by stage); its
    parts are `program` (a `CompiledProgram` in canonical names, identical byte for byte in every compile of the
    action), `artifact:<sha256>` and `dump:<stage>`. The part `tuning`, if present, picks the schedules. With the part
    `renaming` and the header's `cache`, as for the task `render`, the answer also has the parts `answer` and `repeat`.
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
        parts |= answers([told], [CacheInfo(**header["cache"])], request.parts["renaming"])
    return Message(
        {
            "artifacts": sorted(compilation.artifacts),
            "stages": digests,
            "seconds": seconds,
        },
        parts,
    )


def tune(request: Message, outlet: Outlet) -> Message:
    """The request is that of the task `compile`. The part `program` of the answer is a `Tuning`, as JSON."""
    header = request.header
    # Imported here, so that a sandbox without the compiler can run the other tasks.
    from passes.compile import CompileRequest
    from service.sandbox import timing

    outlet.stage("load")
    tuning = timing.tune(
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
