"""Time the candidate schedules of one canonical graph for one target."""

from __future__ import annotations

from service.sandbox.child import Outlet
from service.sandbox.frames import Message
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tensorkiln.target import Target


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
