"""A request for several targets: when one of them fails for good, nobody waits for the others."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from service.engine.answers import programs_of
from service.engine.compiles import Compiled, Compiles
from service.engine.order import OnProgress, Wanted
from service.engine.reader import Prepared
from service.sandbox.frames import Message
from service.sandbox.tasks.prepare import prepare
from tensorkiln.compiler_build import build
from tensorkiln.errors import RequestError
from tests.service.bodies import V3, compile_body, encoded
from tests.settled import settled


class Unsaid:
    """An outlet for a job that nobody listens to."""

    def stage(self, name: str) -> None:
        del name


async def test_when_one_target_fails_the_others_are_given_up() -> None:
    given_up: list[int] = []

    class Failing:
        async def program(self, wanted: Wanted, on_progress: OnProgress) -> Compiled:
            del wanted
            on_progress({"stage": "codegen"})
            try:
                await asyncio.sleep(0.01 if begun[-1] == 1 else 30.0)
            except asyncio.CancelledError:
                given_up.append(len(begun))
                raise
            raise RequestError("No such target.")

    begun: list[int] = []
    body = encoded(compile_body(target=[V3, "cpu:x86-64-v2", "cpu:x86-64-v4"]))
    header = {"build_id": build().build_id, "salt": ""}
    prepared = Prepared.from_message(prepare(Message(header, {"body": body}), cast(Any, Unsaid())), "")

    with pytest.raises(RequestError, match="No such target"):
        await programs_of(prepared, cast(Compiles, Failing()), lambda news: begun.append(news["target"]))
    await settled()
    assert begun == [0, 1, 2]
    assert len(given_up) == 2
