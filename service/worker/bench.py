"""Where one process of a worker works: its sandbox, the store, and a key to sign with."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from secrets import token_hex
from typing import Any, Final

import structlog

from service.action import Action
from service.engine.farm.ledger import Ledger, Result, State, Task
from service.engine.farm.message import MAX_ATTEMPTS, Message
from service.engine.farm.roster import Roster
from service.engine.farm.statements import Statements
from service.engine.local import LocalEngine
from service.engine.order import Cost, Made, Order, Wanted
from service.observe.traces import continuing
from service.sandbox import warm_ups
from service.sandbox.sandbox import Sandbox
from service.settings import Settings
from service.store.blobs import Blobs
from service.store.crashes import Crashes
from service.store.location import open_store
from service.store.programs import Entry, Programs
from service.store.records import Records
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from tensorkiln.compiler_build import build
from tensorkiln.errors import InfrastructureError, TensorkilnError, UnavailableError

from .heartbeat import Heartbeat

BEAT_S: Final = 0.5
"""How often a worker says that it is at an order, and looks whether that is wanted still: well below a lease."""
_END_S: Final = 2.0
"""So long the process of a compile may take to go; then it is taken to have had a processor all along."""

_log = structlog.get_logger()


class Bench:
    """Carries orders out with these settings. Only what is signed here is believed by the services of the farm.

    `is_consuming` is whether the worker gets orders from the broker now.
    """

    def __init__(self, settings: Settings, is_consuming: Callable[[], bool] = lambda: True) -> None:
        self._settings = settings
        store = open_store(settings.store_location)
        records = Records(store)
        self._blobs = Blobs(store)
        self._keyring = Keyring(settings.keys_directory, public_directory=settings.public_keys)
        self._notary = Notary(self._keyring, settings.worker, "process")
        self._programs = Programs(records, self._blobs, self._notary)
        self._crashes = Crashes(records, self._notary)
        statements = Statements(self._notary)
        self._ledger = Ledger(store, records, statements)
        self._name = f"{settings.worker}.{os.getpid()}.{token_hex(4)}"
        self._sandbox = Sandbox(
            (warm_ups.COMPILING,),
            max_output_mib=settings.compile_output_mib,
            wall=settings.isolation,
            required=settings.require_isolation,
            test_hooks=settings.test_hooks,
            # It is what a worker is there for: giving way would be to those that begin, which are for nobody yet.
            gives_way=False,
        )
        self._presence = Heartbeat(self._sandbox, Roster(store, records, statements), self._name, is_consuming)

    async def start(self) -> None:
        """Start the fork server, and sign in. UnavailableError when the fork server or the key cannot be used."""
        self._notary.isolation = (await self._sandbox.start()).level
        self._keyring.signer()
        await self._presence.start()

    async def close(self) -> None:
        """Sign out, and end the fork server."""
        await self._presence.close()
        await self._sandbox.close()

    async def work(self, message: Message) -> str:
        """What became of the attempt that a message announces.

        TensorkilnError when the store fails: then the service that announced it does so again.
        """
        await self._presence.is_fit.wait()
        with continuing(message.trace), self._presence.at_work():
            try:
                return await self._work(message)
            finally:
                await self._crashes.settle()

    async def _work(self, message: Message) -> str:
        task = await self._ledger.find(message.owner, message.task)
        if task is None:
            return "not wanted any more"
        action = Action.from_components(task.action)
        if action.digest != message.action or not 1 <= message.attempt <= MAX_ATTEMPTS:
            # Whichever of them is forged: the service that waits says again what it wants, and so often and no more.
            _log.error("an order is not what its message says", digest=message.action)
            return "refused"
        if action.build_id != build().build_id:
            _log.error("an order is for another build", digest=message.action)
            # Left without a result, it would be announced again; every worker here would refuse it.
            refusal = TensorkilnError(
                "A worker of the farm refused an order that is for another build of the compiler."
            )
            await self._ledger.finish(task, Result(message.attempt, self._name, problem=refusal.to_problem()))
            return "refused"
        if not await self._ledger.claim(task, message.attempt, self._name):
            return "begun by another"
        news: list[Mapping[str, Any]] = []
        cost = Cost()
        making = asyncio.create_task(self._make(task, action, cost, news.append))
        over = asyncio.Event()
        beating = asyncio.create_task(self._beat(task, message.attempt, news, making, over))
        try:
            await asyncio.wait({making})
        finally:
            making.cancel()
            over.set()
            # A beat that is broken off may be written all the same, after everything else.
            await asyncio.wait({beating}, timeout=_END_S)
            beating.cancel()
        is_known, wanted = await asyncio.gather(cost.spending.settled(_END_S), self._ledger.find(task.owner, task.id))
        if making.cancelled() or wanted is None:
            await self._ledger.withdraw(task, message.attempt)
            return "given up"
        error = making.exception()
        if error is not None and not isinstance(error, TensorkilnError):
            raise error
        cpu_s = cost.spending.seconds if is_known else max(cost.spending.seconds, cost.seconds)
        about = Result(message.attempt, self._name, news, cost.seconds, cpu_s)
        if error is not None:
            await self._ledger.finish(task, replace(about, problem=error.to_problem()))
            return error.code
        made = making.result()
        done = replace(about, entry=made.entry, attempts=made.attempts)
        await self._ledger.finish(task, done)
        return "done"

    async def _make(self, task: Task, action: Action, cost: Cost, tell: Any) -> Made:
        if task.hook is None and not task.replaces:
            found = await self._programs.find(action, with_dumps=task.with_dumps)
            if isinstance(found, Entry):
                return Made(b"", found, None)
        graph = await self._blobs.get(action.graph)
        if graph is None:
            raise UnavailableError("The graph of an order is gone from the store; send the request again.")
        limits = replace(self._settings.limits, deadline_s=min(task.deadline_s, self._settings.compile_deadline_s))
        engine = LocalEngine(self._sandbox, limits, self._blobs, self._programs, self._crashes)
        wanted = Wanted(action, graph, task.with_dumps, task.hook, None, task.is_poison)
        return await engine.make(Order(wanted, {}, task.replaces, cost), tell)

    async def _beat(
        self,
        task: Task,
        attempt: int,
        news: list[Mapping[str, Any]],
        making: asyncio.Task[Made],
        over: asyncio.Event,
    ) -> None:
        """Say that the worker lives, until the order is given up or `over`. What ends before a beat needs none."""
        beat = 0
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(BEAT_S):
                    await over.wait()
                    return
            beat += 1
            try:
                if await self._ledger.find(task.owner, task.id) is None:
                    making.cancel()
                    return
                await self._ledger.beat(task, State(attempt, self._name, beat, tuple(news)))
            except InfrastructureError as error:
                _log.error("a sign of life could not be given", reason=error.message)
