"""A request that is read asks for what is stored, in a moment that the store may not draw out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, cast

import pytest

from service.action import Action
from service.engine import lookup
from service.engine.compiles import Compiled, Compiles, Look
from service.engine.lookup import Lookup
from service.engine.order import Tell, Wanted
from service.sandbox.frames import Message
from service.sandbox.tasks.prepare import prepare
from service.sandbox.tasks.render import render
from service.store.programs import Entry, Miss
from service.wire.hit_reasons import SAME_ACTION
from tensorkiln.compiler_build import build
from tensorkiln.errors import RequestError
from tests.service.bodies import V3, compile_body, encoded

SALT = "a salt"
ACTION = Action(1, "build", "a" * 64, {}, "", 1, {})
PROGRAM = Compiled(ACTION, b"{}", Entry("0" * 64, (), seconds={"codegen": 0.5}), SAME_ACTION.model_dump(mode="json"))


class Unsaid:
    """An outlet for a job that nobody listens to."""

    def stage(self, name: str) -> None:
        del name


class Shelf:
    """Instead of `Compiles`: what it has by the place of a target, given after a while."""

    def __init__(self, *has: Compiled | Miss, after_s: float = 0.0) -> None:
        self._has = has
        self._after_s = after_s
        self.looks = 0

    async def look(self, wanted: Wanted) -> Look:
        self.looks += 1
        found = self._has[self.looks - 1]
        await asyncio.sleep(self._after_s)
        return Look(wanted.action, found, 0)


def question(targets: Sequence[str]) -> Message:
    """What the job asks about a request for these targets."""
    header = {"build_id": build().build_id, "salt": SALT}
    return prepare(Message(header, {"body": encoded(compile_body(target=list(targets)))}), cast(Any, Unsaid()))


def asked(shelf: Shelf, targets: Sequence[str]) -> tuple[Lookup, Message]:
    looking = Lookup(SALT, cast(Compiles, shelf))
    return looking, asyncio.run(looking.respond(question(targets)))


def test_all_programs_are_given_in_the_order_of_the_targets() -> None:
    other = Compiled(ACTION, b"[]", Entry("1" * 64, (), {"codegen": "2" * 64}), SAME_ACTION.model_dump(mode="json"))
    looking, response = asked(Shelf(PROGRAM, other), [V3, "cpu:x86-64-v2"])
    assert response.parts == {"program:0": b"{}", "program:1": b"[]"}
    assert [cache["status"] for cache in response.header["caches"]] == ["hit", "hit"]
    assert response.header["seconds"] == [{"codegen": 0.5}, {}]
    assert response.header["stages"] == [{}, {"codegen": "2" * 64}]
    answer = {"answer": b'{"programs":[1]}', "repeat": b'{"programs":[2]}'}
    found, answered = looking.read(Message({}, answer))
    assert answered is not None
    assert [each.program for each in answered.compiled] == [b"{}", b"[]"]
    assert (answered.answers.answer, answered.answers.repeat) == tuple(answer.values())
    assert sha256(found.prepared.graph).hexdigest() == found.wanted[0].action.graph


def test_where_one_is_missing_nothing_is_given_and_nothing_looked_up_again() -> None:
    shelf = Shelf(PROGRAM, Miss("damaged"))
    looking, response = asked(shelf, [V3, "cpu:x86-64-v2"])
    assert response == Message({"caches": [], "seconds": [], "stages": []}, {})
    found, answered = looking.read(Message())
    assert answered is None
    assert [None if look is None else look.found for look in found.looks] == [PROGRAM, Miss("damaged")]
    assert shelf.looks == 2


def test_a_store_that_takes_its_time_is_asked_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "LOOK_S", 0.05)
    looking, response = asked(Shelf(PROGRAM, after_s=30.0), [V3])
    assert response.parts == {}
    found, answered = looking.read(Message())
    assert answered is None
    assert found.looks == (None,)
    assert len(found.wanted) == 1


def test_when_one_target_fails_the_others_are_given_up() -> None:
    given_up: list[int] = []

    class Failing:
        async def program(self, wanted: Wanted, tell: Tell, look: Look | None) -> Compiled:
            del wanted, look
            tell({"stage": "codegen"})
            try:
                await asyncio.sleep(0.01 if begun[-1] == 1 else 30.0)
            except asyncio.CancelledError:
                given_up.append(len(begun))
                raise
            raise RequestError("No such target.")

    begun: list[int] = []
    looking, _ = asked(Shelf(*[Miss("new graph")] * 3), [V3, "cpu:x86-64-v2", "cpu:x86-64-v4"])
    found, _ = looking.read(Message())

    async def run() -> None:
        with pytest.raises(RequestError, match="No such target"):
            await found.programs(cast(Compiles, Failing()), lambda news: begun.append(news["target"]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(run())
    assert begun == [0, 1, 2]
    assert len(given_up) == 2


def test_programs_that_are_given_make_an_answer() -> None:
    _, response = asked(Shelf(PROGRAM), [V3])
    with pytest.raises(ValueError, match="CompiledProgram"):
        render(Message(response.header, {**response.parts, "renaming": b"{}"}), cast(Any, Unsaid()))
