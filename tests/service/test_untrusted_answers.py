"""What a job says is not taken for true: whatever is wrong with its answer is a crash of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from service.body import Body
from service.engine.engine import Engine
from service.identity.authenticator import Authenticator
from service.identity.caller import LOCAL, acting_as
from service.sandbox.frames import Message
from service.sandbox.sandbox import Sandbox
from service.sandbox.warm_ups import COMPILING, READING
from service.settings import Settings
from tensorkiln.errors import CrashedError, RequestError, TensorkilnError
from tests.sandbox.boxes import LIMITS, in_sandbox, ping
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
        reader, compiler = (Sandbox((each, warm_up), test_hooks=True) for each in (READING, COMPILING))
        engine = Engine(settings, reader, compiler, Authenticator(settings).keyring)
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
                elif kind == "render":
                    # The programs are stored now: whoever reads the request writes the answer.
                    await refused(lie, engine.compile(body(asked)))
        # The truth is believed.
        assert (await engine.compile(body(compile_body(target=[V3, "cpu:x86-64-v2"])))).startswith(b'{"programs"')

    with_engine(home, THE_REST, test)


def test_a_job_that_reads_a_request_asks_once_what_is_stored_for_it(home: Path) -> None:
    async def is_silent(engine: Engine) -> None:
        error = await refused("silence", engine.compile(body(compile_body())))
        assert "names no action" in error.message

    async def asks_again(engine: Engine) -> None:
        (error,) = await asyncio.gather(engine.compile(body(compile_body())), return_exceptions=True)
        assert isinstance(error, CrashedError)
        assert "asks something" in error.message

    with_engine(home, "tests.service.warm_ups:ask_nothing", is_silent)
    with_engine(home, "tests.service.warm_ups:ask_again", asks_again)


def test_a_job_that_is_to_ask_nothing_gets_no_answer() -> None:
    async def asks(sandbox: Sandbox) -> None:
        (error,) = await asyncio.gather(ping(sandbox), return_exceptions=True)
        assert isinstance(error, CrashedError)
        assert "asks something" in error.message

    in_sandbox(asks, warm_ups=("tests.service.warm_ups:ask_where_nothing_is_asked",))


def test_what_a_job_says_of_its_end_gives_no_right_and_is_no_crash() -> None:
    async def end(sandbox: Sandbox) -> None:
        async def ended(what: str) -> TensorkilnError:
            with pytest.raises(TensorkilnError) as caught:
                await sandbox.run("ping", Message({"do": what}), LIMITS)
            return caught.value

        # A digest among the details would be one that the caller may read from then on.
        refused = await ended("refuse_and_claim")
        assert (type(refused), dict(refused.details)) == (RequestError, {"limit": 3})
        crashed = await ended("say_it_crashed")
        assert isinstance(crashed, CrashedError)
        assert "garbled" in crashed.message
        assert "cached" not in crashed.details

    in_sandbox(end, warm_ups=("tests.service.warm_ups:do_as_told",))
