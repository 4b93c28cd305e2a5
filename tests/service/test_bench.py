"""What becomes of orders at the bench of a worker: taken, refused for good, or taken back while they are made."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from service.engine.farm.ledger import Ledger, State, Task
from service.engine.order import Made
from service.sandbox import spawn
from service.settings import Settings
from service.store.blobs import Blobs
from service.store.location import open_store
from service.store.programs import Entry
from service.store.records import Records
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from service.worker.bench import Bench
from tensorkiln.compiler_build import build
from tensorkiln.errors import InfrastructureError, error_from_problem
from tests.service.bodies import compile_body, encoded
from tests.service.failing import failing, start_failing
from tests.trust.stores import action


def ledger_of(settings: Settings) -> Ledger:
    notary = Notary(Keyring(settings.keys), "service", "process")
    return Ledger(Records(open_store(settings.store)), notary)


async def test_an_order_of_another_build_comes_to_an_error_that_stays(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    ledger = ledger_of(settings)
    other = action(1)  # its build is none
    task = Task("task", 1, other.components, False, False, 5.0)
    await ledger.open(task)
    bench = Bench.on(settings)
    assert await bench.carry_out(task) == "refused"
    await bench.close()
    assert await ledger.finished() == ["task"]
    result = await ledger.result(task)
    assert result is not None
    assert result.problem is not None
    error = error_from_problem(result.problem)
    assert error.code == "internal"
    assert not isinstance(error, InfrastructureError)


async def test_an_order_taken_back_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beat = Ledger.beat

    async def late(self: Ledger, task: Task, state: State) -> None:
        await self.close(task.id)
        await beat(self, task, state)

    monkeypatch.setattr(Ledger, "beat", late)
    monkeypatch.setattr(spawn, "start", start_failing())
    settings = Settings(home=tmp_path)
    ledger = ledger_of(settings)
    graph = await Blobs(open_store(settings.store)).put(failing(encoded(compile_body()), "hang"))
    wanted = replace(action(1), build_id=build().build_id, graph=graph)
    task = Task("task", 1, wanted.components, False, False, 60.0)
    await ledger.open(task)
    bench = Bench.on(settings)
    await bench.start()
    assert await bench.carry_out(task) == "given up"
    await bench.close()
    assert [path for path in (tmp_path / "store" / "farm").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("is_told_to_end", [True, False])
async def test_a_worker_fills_its_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_told_to_end: bool) -> None:
    may_end = asyncio.Event()

    async def made(*_: object) -> Made:
        await may_end.wait()
        return Made(b"", Entry("0" * 64, ()), None)

    monkeypatch.setattr(Bench, "_make", made)
    settings = Settings(home=tmp_path, concurrency=2)
    ledger = ledger_of(settings)
    components = replace(action(1), build_id=build().build_id).components
    for name in ("first", "second", "third"):
        await ledger.open(Task(name, 1, components, False, False, 60.0))
    bench, ending = Bench.on(settings), asyncio.Event()
    working = asyncio.create_task(bench.work(ending))
    while len(await ledger.claimed()) < 2:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    assert await ledger.claimed() == ["first", "second"]
    if is_told_to_end:
        ending.set()
        may_end.set()
    else:
        working.cancel()
    await asyncio.wait({working})
    await bench.close()
    assert await ledger.finished() == (["first", "second"] if is_told_to_end else [])
    assert await ledger.claimed() == (["first", "second"] if is_told_to_end else [])
