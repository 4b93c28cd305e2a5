"""What a job says is not taken for true: whatever is wrong with its answer is a crash of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from hashlib import sha256
from typing import Any

import pytest

from service.engine.engine import Engine
from service.identity.caller import LOCAL, acting_as
from service.process.memory_limit import MemoryLimit
from service.sandbox.sandbox import Sandbox
from service.sandbox.spawn import COMPILING, READING
from service.server.listen import authenticator
from service.settings import Settings
from service.wire.body import Body
from tensorkiln.errors import CrashedError
from tests.service.bodies import V3, compile_body, encoded, graph
from tests.service.failing import INSTALL, failing
from tests.service.lies import LIE, LIES

LIES_TOLD = "tests.service.lies:lie"
Test = Callable[[Engine], Awaitable[None]]


def body(content: Any) -> Body:
    text = encoded(content)
    return Body(text, sha256(text).hexdigest())


@pytest.fixture(scope="module")
def with_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Test], None]]:
    """Runs a test with an engine whose jobs lie when they are told to by the graph of a request."""
    settings = Settings(home=tmp_path_factory.mktemp("engine"))
    reader, compiler = (Sandbox((each, LIES_TOLD, INSTALL)) for each in (READING, COMPILING))

    async def run(test: Test) -> None:
        with acting_as(LOCAL):
            await test(engine)

    with asyncio.Runner() as runner:
        engine = Engine(settings, reader, compiler, authenticator(settings).keyring, MemoryLimit(1024))
        try:
            runner.run(engine.start())
            yield lambda test: runner.run(run(test))
        finally:
            runner.run(engine.close())


async def refused(lie: str, asked: Awaitable[object]) -> CrashedError:
    (error,) = await asyncio.gather(asked, return_exceptions=True)
    assert isinstance(error, CrashedError), (lie, error)
    assert error.details["stage"] == "return", lie
    return error


@pytest.mark.xdist_group("engine")
def test_an_answer_that_lacks_or_garbles_something_is_a_crash(with_engine: Callable[[Test], None]) -> None:
    found: dict[str, str] = {}

    async def test(engine: Engine) -> None:
        for rows, lie in enumerate(LIES["compile"], 100):
            wire = graph(name=f"{LIE}compile.{lie}", rows=rows)
            found[lie] = (await refused(lie, engine.answers.compile(body(compile_body(wire))))).message

    with_engine(test)
    assert "artifacts" in found["no_artifacts"]
    assert "stages" in found["a_list_of_stages"]
    assert "does not give" in found["no_answer"]


@pytest.mark.xdist_group("engine")
def test_tasks_that_read_or_write_are_not_believed_either(with_engine: Callable[[Test], None]) -> None:
    async def test(engine: Engine) -> None:
        for kind, lie in ((kind, lie) for kind, lies in LIES.items() for lie in lies if kind != "compile"):
            wire = graph(name=f"{LIE}{kind}.{lie}")
            # Two targets, whose programs no compile puts into one answer; a renaming is used for an error alone.
            asked = compile_body(wire, [V3, "cpu:x86-64-v2"])
            if kind == "validate":
                error = await refused(lie, engine.answers.validate(body({"graph": wire})))
            elif kind == "split":
                error = await refused(lie, engine.answers.split(body({"requests": [asked]})))
            elif lie == "a_renaming_of_nothing":
                await refused(lie, engine.answers.compile(body(json.loads(failing(encoded(asked), "refuse")))))
                continue
            else:
                error = await refused(lie, engine.answers.compile(body(asked)))
            assert await engine.blobs.holds([error.details["reproducer"]])
            if kind == "prepare":
                await refused(lie, engine.answers.explain(body(asked)))
            elif kind == "render":
                await refused(lie, engine.answers.compile(body(asked)))
        assert (await engine.answers.compile(body(compile_body(target=[V3, "cpu:x86-64-v2"])))).startswith(
            b'{"programs"'
        )

    with_engine(test)
