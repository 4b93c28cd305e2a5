"""One canonical graph for one target, through the compiler."""

from __future__ import annotations

from service.sandbox.child import Outlet
from service.sandbox.frames import Message
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tensorkiln.spec import CacheInfo, Tuning
from tensorkiln.target import Target

from .render import answers

STORED = CacheInfo(status="hit", reason="stored program")


def compile_action(request: Message, outlet: Outlet) -> Message:
    """The part `graph` is canonical; the header gives `digest`, `target`, `options` and `provenance`.

    The answer: `artifacts` (their SHA-256s), `stages` (name to SHA-256 of its dump) and `seconds` (name to its time) in
    the header; the parts `program` (a `CompiledProgram` in canonical names, which any other compile of the action gives
    byte for byte), `artifact:<sha256>` and `dump:<stage>`. Schedules are picked by the part `tuning`, if there is one.
    For a request that is answered by this program alone, `renaming` and the header's `cache` are given as to the task
    `render`, and its parts `answer` and `repeat` come with the others.
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
    told = program.model_copy(
        update={"digest": header["digest"], "cache": STORED, "provenance": provenance, "tuning": tuning}
    )
    outlet.stage("return")
    parts = {f"artifact:{digest}": content for digest, content in compilation.artifacts.items()}
    parts |= {f"dump:{name}": content for name, content in dumps.items()}
    parts["program"] = told.with_stages({}, {}).model_dump_json().encode()
    if "renaming" in request.parts:
        parts |= answers([told], [CacheInfo(**header["cache"])], request.parts["renaming"])
    return Message(
        {
            "artifacts": sorted(compilation.artifacts),
            "stages": {stage.name: stage.dump for stage in told.stages if stage.dump is not None},
            "seconds": {stage.name: stage.seconds for stage in told.stages},
        },
        parts,
    )
