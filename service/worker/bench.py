"""A worker of a farm, with its sandbox, the store, a key to sign with, and heartbeats that show that it compiles."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from os import getpid
from typing import Any, Final

import structlog

from service import clock
from service.action import Action
from service.engine.farm.engine import LOOK_EVERY_S
from service.engine.farm.ledger import Ledger, Result, State, Task
from service.engine.farm.roster import Role, Roster
from service.engine.local import LocalEngine
from service.engine.order import Made, OnProgress, Order, Wanted
from service.observe.telemetry import continuing
from service.process.periodic import Background
from service.readiness.readiness import Canary, Check, Failure, look_at_store
from service.sandbox.connection import Spending
from service.sandbox.control import Limits
from service.sandbox.sandbox import Sandbox
from service.sandbox.spawn import COMPILING
from service.settings import Settings
from service.store.attempts import Crashes
from service.store.blobs import Blobs
from service.store.claims import BEAT_S, LEASE_S, heartbeats
from service.store.location import ObjectStore, open_store
from service.store.programs import Entry, Programs
from service.store.records import Records
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from tensorkiln.compiler_build import build
from tensorkiln.errors import InfrastructureError, TensorkilnError, UnavailableError

TRY_EVERY_S: Final = 6.0
"""Seconds between canaries. With the timeout of a check and the look of a service, defects are seen within 15 s."""
_AGAIN_S: Final = 1.0
"""Seconds until a canary that failed is tried again."""
_HEARTBEAT_S: Final = 0.5
"""How often a worker writes the heartbeat of an order with its progress, and looks whether it was cancelled."""
_END_S: Final = 2.0
"""Seconds to wait for the process of a compile to end; then its processor time is taken to be its wall time."""
_PAUSE_S: Final = 1.0
"""Seconds until a store that failed is asked for orders again."""
_log = structlog.get_logger()


class Heartbeat:
    """Writes heartbeats as `name`, and compiles the canary periodically while one of the `places` for orders is free.

    The worker `is_fit` if the last canary was compiled; otherwise it starts no orders.
    """

    def __init__(self, sandbox: Sandbox, roster: Roster, name: str, places: int) -> None:
        self._roster = roster
        self._name = name
        self._places = places
        self._busy = 0
        self._registered_at = float("-inf")
        self._canary = Check("canary", Canary(sandbox).look)
        self._role: Role | None = None
        self._running = Background()
        self._idle = asyncio.Event()
        self._idle.set()
        self._changed = asyncio.Event()
        self.is_fit = True

    async def start(self) -> None:
        await self._try()
        self._running.see_to(self._register())
        self._running.see_to(self._try_again())

    async def close(self) -> None:
        await self._running.end()
        await self._canary.close()
        role, self._role = self._role, None
        if role is not None:
            with suppress(UnavailableError):  # the lease ends anyway
                await self._roster.deregister(role, self._name)

    @contextmanager
    def at_work(self) -> Generator[None]:
        """Hold a place for an order inside the block. No canary starts while orders hold all places."""
        self._busy += 1
        if self._busy >= self._places:
            self._idle.clear()
        try:
            yield
        finally:
            self._busy -= 1
            self._idle.set()

    def is_ready(self) -> bool:
        """Whether it has sent a heartbeat as a fit worker within a lease."""
        return self._role == "worker" and clock.monotonic() - self._registered_at < LEASE_S

    async def _try_again(self) -> None:
        while True:
            await asyncio.sleep(TRY_EVERY_S if self.is_fit else _AGAIN_S)
            await self._idle.wait()
            await self._try()

    async def _try(self) -> None:
        (failure,) = await asyncio.gather(self._canary.failure(), return_exceptions=True)
        if isinstance(failure, BaseException):
            _log.error("the canary failed because of a defect of the worker", exc_info=failure)
        is_fit = failure is None
        if is_fit != self.is_fit:
            if not is_fit:
                _log.error("the worker cannot compile; it takes no orders until it can")
            self.is_fit = is_fit
            self._changed.set()

    async def _register(self) -> None:
        while True:
            self._changed.clear()
            role: Role = "worker" if self.is_fit else "unfit"
            try:
                await self._roster.register(role, self._name, self._places)
                self._role, self._registered_at = role, clock.monotonic()
            except UnavailableError as error:
                _log.error("a heartbeat could not be written", reason=error.message)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), BEAT_S)


class Bench:
    """Takes orders from `store`, carries them out in `sandbox`, and signs the programs with the key of `keyring`."""

    def __init__(self, settings: Settings, store: ObjectStore, keyring: Keyring, sandbox: Sandbox) -> None:
        self._settings = settings
        self._keyring = keyring
        self._sandbox = sandbox
        self._records = records = Records(store)
        self._look_every_s = LOOK_EVERY_S[store.root is not None]
        self._blobs = Blobs(store)
        self._notary = Notary(keyring, settings.worker, "process")
        self._programs = Programs(records, self._blobs, self._notary)
        self._crashes = Crashes(records, self._notary)
        self._ledger = Ledger(records, self._notary)
        self._name = f"{settings.worker}.{getpid()}.{clock.token_hex(4)}"
        roster = Roster(store, records, self._notary)
        self._heartbeat = Heartbeat(sandbox, roster, self._name, settings.concurrency)
        self.is_ready = self._heartbeat.is_ready

    @staticmethod
    def on(settings: Settings) -> Bench:
        """The worker of this machine. UnavailableError when the store cannot be used."""
        sandbox = Sandbox(
            (COMPILING,),
            max_output_mib=settings.compile_output_mib,
            wall=settings.isolation,
            required=settings.require_isolation,
            # Compiling is the whole task of a worker: it has nothing to give way to.
            gives_way=False,
        )
        keyring = Keyring(settings.keys, public_directory=settings.public_keys)
        return Bench(settings, open_store(settings.store), keyring, sandbox)

    async def start(self) -> None:
        """Check the key and the store, start the fork server, and start heartbeats. UnavailableError if one fails."""
        self._keyring.publish()
        self._keyring.signer()
        try:
            await look_at_store(self._records)
        except Failure as failure:
            if not failure.in_part:
                raise UnavailableError(failure.reason) from None
        self._notary.isolation = (await self._sandbox.start()).level
        await self._heartbeat.start()

    async def close(self) -> None:
        await self._heartbeat.close()
        await self._sandbox.close()

    async def work(self, ending: asyncio.Event) -> None:
        """Take orders until `ending`, and finish those that are started. When cancelled, give them back."""
        end = asyncio.create_task(ending.wait())
        working: set[asyncio.Task[str]] = set()
        try:
            while not ending.is_set():
                has_place = self._heartbeat.is_fit and len(working) < self._settings.concurrency
                task = await self._take() if has_place else None
                if task is not None:
                    working.add(asyncio.create_task(self.carry_out(task)))
                    continue
                await asyncio.wait({end, *working}, timeout=self._look_every_s, return_when=asyncio.FIRST_COMPLETED)
                working = {each for each in working if not each.done()}
            await self._heartbeat.close()
            await asyncio.gather(*working)
        finally:
            end.cancel()
            for each in working:
                each.cancel()
            await asyncio.gather(*working, return_exceptions=True)

    async def _take(self) -> Task | None:
        try:
            return await self._ledger.take(self._name)
        except InfrastructureError as error:
            _log.error("no order could be claimed from the store; it is tried again", reason=error.message)
            await asyncio.sleep(_PAUSE_S)
            return None

    async def carry_out(self, task: Task) -> str:
        """Carry out a claimed order; its outcome, for the log. Without a result, it is retried after the lease."""
        outcome = "lost"
        with continuing(task.trace), self._heartbeat.at_work():
            try:
                outcome = await self._carry_out(task)
            except asyncio.CancelledError:
                outcome = "given back"
                await asyncio.shield(self._ledger.release(task.id))
                raise
            except TensorkilnError as error:
                _log.error("an order could not be finished", reason=error.message)
            except Exception as error:
                _log.error("an order failed because of a defect of the worker", exc_info=error)
            finally:
                await self._crashes.settle()
                _log.info("an order ended", outcome=outcome, order=task.id, attempt=task.attempt)
        return outcome

    async def _carry_out(self, task: Task) -> str:
        action = Action(**task.action)
        if action.build_id != build().build_id:
            _log.error("an order is for another build", digest=action.digest)
            # Left without a result, it would be begun again; every worker here would refuse it.
            refusal = TensorkilnError(
                "A worker of the farm refused an order that is for another build of the compiler."
            )
            await self._ledger.finish(task, Result(self._name, problem=refusal.to_problem()))
            return "refused"
        news: list[Mapping[str, Any]] = []
        cost = Spending()
        making = asyncio.create_task(self._make(task, action, cost, news.append))
        async with self._heartbeats(task, news, making):
            try:
                await asyncio.wait({making})
            finally:
                making.cancel()
        is_known, wanted = await asyncio.gather(cost.settled(_END_S), self._ledger.find(task.id))
        if making.cancelled() or wanted != task:
            # Leave the claim if another attempt is open: it may be of another worker.
            if wanted is None:
                await self._ledger.release(task.id)
            return "given up"
        error = making.exception()
        if error is not None and not isinstance(error, TensorkilnError):
            raise error
        cpu_s = cost.seconds if is_known else max(cost.seconds, cost.run_s)
        problem = error.to_problem() if error is not None else None
        await self._ledger.finish(task, Result(self._name, news, cost.run_s, cpu_s, problem))
        return error.code if error is not None else "done"

    async def _make(self, task: Task, action: Action, cost: Spending, on_progress: OnProgress) -> Made:
        if not task.replaces:
            found = await self._programs.find(action, with_dumps=task.with_dumps)
            if isinstance(found, Entry):
                return Made(b"", found, None)
        graph = await self._blobs.get(action.graph)
        if graph is None:
            raise UnavailableError("The graph of an order is gone from the store; send the request again.")
        most = self._settings.limits
        limits = Limits(min(task.deadline_s, most.deadline_s), most.memory_mib, most.file_mib)
        engine = LocalEngine(self._sandbox, limits, self._blobs, self._programs, self._crashes)
        wanted = Wanted(action, graph, task.with_dumps)
        return await engine.make(Order(wanted, {}, task.replaces, cost), on_progress)

    def _heartbeats(
        self, task: Task, news: list[Mapping[str, Any]], making: asyncio.Task[Made]
    ) -> AbstractAsyncContextManager[None]:
        """Heartbeats of an order. The one after the order is cancelled cancels `making`, too."""

        async def send(beat: int) -> bool:
            if await self._ledger.find(task.id) != task:
                making.cancel()
                return False
            await self._ledger.beat(task, State(self._name, beat, tuple(news)))
            return True

        return heartbeats(_HEARTBEAT_S, send, _END_S)
