"""What a job says is not taken for true: whatever is wrong with its answer is a crash of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from service.body import Body
from service.engine.engine import Engine
from service.identity.authenticator import Authenticator
from service.identity.caller import LOCAL, acting_as
from service.sandbox.sandbox import Sandbox
from service.sandbox.warm_ups import COMPILING
from service.settings import Settings
from tensorkiln.errors import CrashedError
from tests.service.bodies import V3, compile_body, encoded, graph
from tests.service.warm_ups import LIE, LIES, OTHER_LIES

COMPILES = "tests.service.warm_ups:lie"
THE_REST = "tests.service.warm_ups:lie_about_the_rest"


def body(content: Any) -> Body:
    text = encoded(content)
    return Body(text, sha256(text).hexdigest())


def with_engine(home: Path, warm_up: str, test: Callable[[Engine], Awaitable[None]]) -> None:
    async def run() -> None:
        settings = Settings(home=home, test_hooks=True)
        engine = Engine(settings, Sandbox((COMPILING, warm_up), test_hooks=True), Authenticator(settings).keyring)
        try:
            await engine.start()
            with acting_as(LOCAL):
                await test(engine)
        finally:
            await engine.close()

    asyncio.run(run())


async def refused(lie: str, asked: Awaitable[object]) -> CrashedError:
    """The crash that a lie is answered with."""
    (error,) = await asyncio.gather(asked, return_exceptions=True)
    assert isinstance(error, CrashedError), (lie, error)
    assert error.details["stage"] == "return", lie
    return error


def test_an_answer_that_lacks_or_garbles_something_is_a_crash(home: Path) -> None:
    found: dict[str, str] = {}

    async def test(engine: Engine) -> None:
        for lie in LIES:
            found[lie] = (await refused(lie, engine.compile(body(compile_body()), lie))).message

    with_engine(home, COMPILES, test)
    assert "artifacts" in found["no_artifacts"]
    assert "stages" in found["a_list_of_stages"]
    assert "does not give" in found["no_answer"]


def test_a_job_that_reads_or_writes_for_a_request_is_not_believed_either(home: Path) -> None:
    async def test(engine: Engine) -> None:
        for kind, lies in OTHER_LIES.items():
            for lie in lies:
                wire = graph(name=f"{LIE}{kind}.{lie}")
                # Two targets, whose programs no compile puts into one answer; a renaming is used for an error alone.
                asked = compile_body(wire, [V3, "cpu:x86-64-v2"])
                if kind == "validate":
                    error = await refused(lie, engine.validate(body({"graph": wire})))
                elif kind == "split":
                    error = await refused(lie, engine.split(body({"requests": [asked]})))
                elif lie == "a_renaming_of_nothing":
                    await refused(lie, engine.compile(body(asked), "refuse"))
                    continue
                else:
                    error = await refused(lie, engine.compile(body(asked)))
                assert await engine.blobs.holds([error.details["reproducer"]])
                if kind == "prepare":
                    await refused(lie, engine.explain(body(asked)))
        # The truth is believed.
        assert (await engine.compile(body(compile_body(target=[V3, "cpu:x86-64-v2"])))).startswith(b'{"programs"')

    with_engine(home, THE_REST, test)
