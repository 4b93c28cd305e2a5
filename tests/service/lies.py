"""Jobs that lie, as a warm-up for fork servers of the tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from service.sandbox.child import Outlet, Task
from service.sandbox.frames import Message
from service.sandbox.tasks import TASKS

LIES: dict[str, dict[str, Callable[[dict[str, Any], dict[str, bytes]], object]]] = {
    "compile": {
        "no_artifacts": lambda header, parts: header.pop("artifacts"),
        "no_stages": lambda header, parts: header.pop("stages"),
        "artifacts_of_numbers": lambda header, parts: header.update(artifacts=[1, 2]),
        "artifacts_of_paths": lambda header, parts: header.update(artifacts=["../../keys"]),
        "one_artifact": lambda header, parts: header.update(artifacts="0" * 64),
        "a_list_of_stages": lambda header, parts: header.update(stages=["parse"]),
        "unknown_bytes": lambda header, parts: header.update(artifacts=["0" * 64]),
        "no_program": lambda header, parts: parts.pop("program"),
        "no_answer": lambda header, parts: parts.pop("answer"),
        "an_empty_answer": lambda header, parts: parts.update(answer=b""),
    },
    "prepare": {
        "no_targets": lambda header, parts: header.pop("targets"),
        "targets_of_none": lambda header, parts: header.update(targets=[]),
        "too_many_targets": lambda header, parts: header.update(targets=header["targets"] * 17),
        "a_target_of_a_number": lambda header, parts: header.update(targets=[3]),
        "a_target_of_nothing": lambda header, parts: header.update(targets=[{}]),
        "a_target_in_other_words": lambda header, parts: header["targets"][0]["features"].reverse(),
        "a_salt": lambda header, parts: header.update(salt="of somebody else"),
        "a_build": lambda header, parts: header.update(build_id="0" * 64),
        "a_digest": lambda header, parts: header.update(graph="0" * 64),
        "no_options": lambda header, parts: header.pop("options"),
        "options_of_lists": lambda header, parts: header.update(options=[]),
        "an_unknown_option": lambda header, parts: header.update(options={"fast_math": False, "x": 1}),
        "no_dump_stages": lambda header, parts: header.pop("dump_stages"),
        "dump_stages_of_text": lambda header, parts: header.update(dump_stages="yes"),
        "no_graph": lambda header, parts: parts.pop("graph"),
        "no_renaming": lambda header, parts: parts.pop("renaming"),
        "a_renaming_of_nothing": lambda header, parts: parts.update(renaming=b"{}"),
    },
    "render": {
        "no_answer": lambda header, parts: parts.pop("answer"),
        "an_empty_answer": lambda header, parts: parts.update(answer=b""),
        "an_answer_of_nothing": lambda header, parts: parts.update(answer=b"[]"),
    },
    "validate": {
        "no_answer": lambda header, parts: parts.pop("answer"),
        "an_empty_answer": lambda header, parts: parts.update(answer=b""),
    },
    "split": {
        "no_refused": lambda header, parts: header.pop("refused"),
        "refused_of_lists": lambda header, parts: header.update(refused=[]),
        "refused_for_nothing": lambda header, parts: header.update(refused={"1": 3}),
        "refused_with_odd_pointers": lambda header, parts: header.update(
            refused={"1": {"code": "request.invalid", "pointers": 3}}
        ),
        "refused_by_the_service": lambda header, parts: header.update(refused={"1": {"code": "auth.missing"}}),
        "a_request_before_the_first": lambda header, parts: header.update(refused={"-1": {"code": "request.invalid"}}),
        "a_request_too_far": lambda header, parts: parts.update({"7": b"{}"}),
        "no_request": lambda header, parts: parts.clear(),
        "a_request_by_name": lambda header, parts: parts.update(x=b"{}"),
        "too_many_requests": lambda header, parts: parts.update({str(position): b"{}" for position in range(300)}),
    },
}
"""What jobs under foreign control may say, by kind and by the name of the graph that has them say it, after LIE."""

LIE = "lie."


def lie() -> None:
    """Have the jobs of LIES answer so to graphs with such names."""
    jobs = cast(dict[str, Task], TASKS)

    def lying(kind: str, honest: Task) -> Task:
        def job(request: Message, outlet: Outlet) -> Message:
            answer = honest(request, outlet)
            said, parts = dict(answer.header), dict(answer.parts)
            text = b"".join(request.parts.values())
            for name, tell in LIES[kind].items():
                if f'"{LIE}{kind}.{name}"'.encode() in text:
                    tell(said, parts)
            return Message(said, parts)

        return job

    for kind in LIES:
        jobs[kind] = lying(kind, jobs[kind])
