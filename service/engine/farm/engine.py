"""The back end that is a farm: workers take orders from the store, and write their results there.

Every service checks the workers of its own orders, and offers an order again when its worker was lost, so there is no
leader. If a service is lost, the service that takes over its jobs makes new orders.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final

import structlog

from service import clock
from service.engine.order import Made, OnProgress, Order, Wanted
from service.fairness.queue_time import queue_time
from service.observe.telemetry import traceparent
from service.process.periodic import Background, periodically
from service.store.blobs import Blobs
from service.store.claims import BEAT_S, LEASE_S, Lease
from service.store.programs import Entry, Miss, Programs
from tensorkiln.errors import LostWorkerError, UnavailableError, UntrustedArtifactError, error_from_problem

from .ledger import Ledger, Result, State, Task, is_of, new_id
from .roster import Roster


class Pending:
    """An attempt at an order, `task` as the store should have it. `result` is set at its end: None if it was lost.

    `worker` has claimed it, if it is not empty. `refused` counts the leases in which the only claim was invalid.
    """

    def __init__(self, order: Order, task: Task, on_progress: OnProgress) -> None:
        self.order = order
        self.task = task
        self.result: asyncio.Future[Result | None] = asyncio.get_running_loop().create_future()
        # Until a worker has it, it waits and does not run.
        self._waiting = ExitStack()
        self._waiting.enter_context(queue_time().with_more(waiting=1, running=-1))
        self._on_progress = on_progress
        self.worker = ""
        self.refused = self._reported = 0
        self.lease = Lease()
        self._begun_at = self.lease.renewed_at

    @property
    def lease_is_over(self) -> bool:
        return self.lease.is_over

    def claimed_by(self, worker: str) -> None:
        if not self.worker:
            self._waiting.close()
            self.worker = worker
            self.lease.renew()
            self._begun_at = self.lease.renewed_at

    @property
    def run_s(self) -> float:
        """Seconds for which a worker has had it, until a lease after its last heartbeat."""
        return min(clock.monotonic(), self.lease.renewed_at + LEASE_S) - self._begun_at if self.worker else 0.0

    def heartbeat(self, state: State) -> None:
        """Renew the lease by a heartbeat, unless it is an old one: an attacker may have written it again."""
        if self.lease.heartbeat(state.beat):
            self.report(state.news)

    def report(self, news: Sequence[Mapping[str, Any]]) -> None:
        """Report the events that are new; `news` has all of them."""
        for each in news[self._reported :]:
            self._on_progress(each)
        self._reported = max(self._reported, len(news))

    def charge(self, result: Result | None) -> None:
        if result is None:
            self.order.cost.lose(self.run_s)
        else:
            self.order.cost.run_s += result.run_s
            self.order.cost.add(result.cpu_s)

    def finish(self, result: Result | None) -> None:
        """Set the result, unless the order was cancelled meanwhile."""
        if not self.result.done():
            self._waiting.close()
            self.result.set_result(result)

    def abandon(self) -> None:
        self._waiting.close()
        self.result.cancel()


MAX_ATTEMPTS: Final = 5
"""How many workers may be lost over an order."""
LOOK_EVERY_S: Final = {True: 0.02, False: 0.25}
"""Seconds between looks for orders and results, by whether the store is a directory, which is listed faster."""
_WATCH_EVERY_S: Final = 0.25
_RESTORE_EVERY_S: Final = 1.0
_PAUSE_S: Final = 1.0
# A new key of a worker is seen within a second, if the directory of keys is shared.
_KEY_PATIENCE_S: Final = 3.0

_log = structlog.get_logger()


class FarmEngine:
    """Carries orders out by workers. `deadline_s` is for one attempt; `is_near`: the store is a directory."""

    def __init__(
        self, ledger: Ledger, roster: Roster, programs: Programs, blobs: Blobs, *, deadline_s: float, is_near: bool
    ) -> None:
        self._ledger = ledger
        self._roster = roster
        self._programs = programs
        self._blobs = blobs
        self._deadline_s = deadline_s
        self._look_every_s = LOOK_EVERY_S[is_near]
        self._owner = clock.token_hex(8)
        self._pending: dict[str, Pending] = {}
        self._is_busy = asyncio.Event()
        self._is_registered = False
        self._check_at = self._restore_at = 0.0
        self._checked_at = clock.monotonic()
        self._watching = Background()

    async def start(self) -> None:
        self._watching.see_to(periodically("watch its orders", self._look_every_s, self._watch, at_once=True))
        self._watching.see_to(periodically("read the farm's heartbeats", BEAT_S, self._update_roster, at_once=True))

    async def make(self, order: Order, on_progress: OnProgress) -> Made:
        """See `CompileEngine.make`. An attempt whose worker is lost is repeated, MAX_ATTEMPTS times in all."""
        wanted = order.wanted
        task = Task(
            id=new_id(self._owner),
            attempt=1,
            action=wanted.action.components,
            with_dumps=wanted.with_dumps,
            replaces=order.replaces,
            deadline_s=self._deadline_s,
            trace=traceparent(),
        )
        pending = self._pending[task.id] = Pending(order, task, on_progress)
        try:
            await self._offer(pending)
            self._is_busy.set()
            while (result := await pending.result) is None or result.may_pass:
                if task.attempt == MAX_ATTEMPTS or (result is not None and not result.worker):
                    break
                pending.charge(result)
                task = replace(task, attempt=task.attempt + 1)
                pending = self._pending[task.id] = Pending(order, task, on_progress)
                on_progress({"stage": "retry", "attempt": task.attempt})
                await self._offer_again(pending)
            pending.charge(result)
            return await self._outcome(order, result)
        finally:
            await asyncio.shield(self._forget(pending))

    async def _outcome(self, order: Order, result: Result | None) -> Made:
        """The program of the result of the last attempt. Raises its error, if it is one.

        UnavailableError when the program is not in the store, UntrustedArtifactError when it is not trusted here.
        """
        lost = _given_up(f"{MAX_ATTEMPTS} workers were lost over this compile")
        if result is None:
            result = lost
        elif result.worker and result.problem is not None and result.problem.get("code") == LostWorkerError.code:
            # With the number of attempts, so that the job is not started over.
            result = replace(result, problem=lost.problem)
        gone = UnavailableError("The program that the farm compiled is not in the store; send the request again.")
        error = gone if result.problem is None else error_from_problem(result.problem)
        # A lost worker may have stored its program all the same: look for it.
        if error is not gone and (result.worker or order.replaces):
            raise error
        found = await self._find(order.wanted)
        if isinstance(found, Miss):
            raise error
        entry, program = found
        return Made(program, entry, None)

    async def _find(self, wanted: Wanted) -> tuple[Entry, bytes] | Miss:
        until = clock.monotonic() + _KEY_PATIENCE_S
        while True:
            found = await self._programs.load(wanted.action, with_dumps=wanted.with_dumps)
            doubt = await self._programs.doubt(wanted.action) if isinstance(found, Miss) else None
            if doubt is None:
                return found
            if (reason := doubt.details["reason"]) != "unknown_key" or clock.monotonic() > until:
                # A retry by the same workers would not change that.
                setting = "KILN_REQUIRE_ISOLATION" if reason == "isolation" else "KILN_KEYS"
                what = f"{doubt.message} Services and workers of a farm need the same {setting}."
                raise UntrustedArtifactError(what, details=doubt.details)
            await asyncio.sleep(_PAUSE_S)

    async def close(self) -> None:
        """Stop watching. Workers go on, and store what they compile."""
        await self._watching.end()

    async def _forget(self, pending: Pending) -> None:
        """Remove an order that has ended or was cancelled. If the store fails, its upkeep removes the order later."""
        del self._pending[pending.task.id]
        if not self._pending:
            self._is_busy.clear()
        if pending.result.cancelled() or not pending.result.done():
            pending.order.cost.lose(pending.run_s)
        pending.abandon()
        try:
            await self._ledger.close(pending.task.id)
        except UnavailableError as error:
            _log.warning("a finished order could not be deleted", reason=error.message)

    async def _watch(self) -> None:
        """Collect results, check the leases of workers, and offer lost orders again."""
        await self._is_busy.wait()
        await self._collect()
        now = clock.monotonic()
        if now >= self._check_at:
            await self._check()
            self._check_at = now + _WATCH_EVERY_S
        if now >= self._restore_at:
            await self._restore()
            self._restore_at = now + _RESTORE_EVERY_S

    async def _collect(self) -> None:
        for identifier in await self._ledger.finished():
            if not is_of(self._owner, identifier):
                continue
            pending = self._pending.get(identifier)
            if pending is None:
                # The worker finished before it noticed that the order was cancelled.
                await self._ledger.close(identifier)
                continue
            result = await self._ledger.result(pending.task) if not pending.result.done() else None
            if result is None:
                continue
            pending.report(result.news)
            pending.finish(result)

    async def _check(self) -> None:
        """Read the claims, and end attempts whose worker was lost. UnavailableError when the store cannot be read."""
        claimed = set(await self._ledger.claimed())
        # Workers go on while the store is down, and are not lost because their heartbeats could not be read.
        if clock.monotonic() - self._checked_at > LEASE_S:
            for pending in self._pending.values():
                pending.lease.renew()  # no heartbeat could be read
        for identifier, pending in tuple(self._pending.items()):
            if pending.result.done():
                continue
            if identifier in claimed:
                await self._read_claim(pending)
            elif pending.worker:
                pending.finish(None)  # its worker gave it back
                continue
            else:
                pending.lease.renew()
                pending.refused = 0
            if pending.lease_is_over:
                await self._reap(pending)
        self._checked_at = clock.monotonic()

    async def _offer(self, pending: Pending) -> None:
        """Write the attempt and its graph to the store, even if they were there before."""
        await self._blobs.put(pending.order.wanted.graph)
        await self._ledger.open(pending.task)
        if pending.result.done():  # it was cancelled meanwhile
            await self._ledger.close(pending.task.id)

    async def _restore(self) -> None:
        """Offer again the orders that wait for a worker and are missing in the store."""
        waiting = [each for each in self._pending.values() if not each.worker and not each.result.done()]
        if waiting:
            opened = set(await self._ledger.opened())
            for pending in waiting:
                if pending.task.id not in opened:
                    await self._offer(pending)

    async def _offer_again(self, pending: Pending) -> None:
        """Replace the order of an earlier attempt. If the store fails, `_restore` or `_reap` offer it."""
        try:
            # `close` deletes the order before its claim, so that no worker takes the old attempt in between.
            await self._ledger.close(pending.task.id)
            await self._offer(pending)
        except UnavailableError as error:
            _log.error("an order could not be offered again; it is tried again", reason=error.message)

    async def _read_claim(self, pending: Pending) -> None:
        # If the worker's claim was overwritten by a forged one, its next heartbeat replaces that.
        state = await self._ledger.state(pending.task)
        worker = pending.worker or (state.worker if state is not None else await self._ledger.worker(pending.task))
        if worker:
            pending.claimed_by(worker)
        if state is not None:
            pending.heartbeat(state)

    async def _reap(self, pending: Pending) -> None:
        about = {"order": pending.task.id, "digest": pending.order.wanted.action.digest}
        if pending.worker:
            _log.warning("a worker was lost", worker=pending.worker, attempt=pending.task.attempt, **about)
            pending.finish(None)
            return
        # The only claim is invalid: verified workers ignore it.
        pending.lease.renew()
        pending.refused += 1
        if pending.refused >= MAX_ATTEMPTS and not self._roster.count("worker"):
            _log.error("no verified worker takes an order", **about)
            pending.finish(_given_up("No verified worker of the farm took this compile"))
        else:
            await self._offer(pending)

    async def _update_roster(self) -> None:
        """Read the heartbeats of members, and write one of this service while it has orders."""
        if self._pending:
            await self._roster.register("service", self._owner)
        elif self._is_registered:
            await self._roster.deregister("service", self._owner)
        self._is_registered = bool(self._pending)
        await self._roster.refresh()


def _given_up(reason: str) -> Result:
    error = LostWorkerError(f"{reason}; it is not retried.", details={"attempts": MAX_ATTEMPTS})
    return Result("", problem=error.to_problem())
