"""The engine: the parts that the routes call, with their startup and shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from service.fairness.turns import Fairness
from service.identity.tenancy import Tenancy
from service.process.shutdown import Shutdown
from service.readiness.readiness import Readiness
from service.sandbox.control import Ready
from service.sandbox.levels import Level
from service.sandbox.sandbox import Sandbox
from service.store.blobs import Blobs
from service.store.programs import Entry, Programs
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from tensorkiln.errors import NotFoundError, UnavailableError

from .answers import Answers
from .compiles import Compiles
from .jobs import Jobs
from .order import CompileEngine
from .questions import Questions
from .submissions import Submissions


@dataclass(eq=False, kw_only=True)
class Engine:
    """The compiler with its store, made by `wiring.engine_of`. Methods that routes call raise only TensorkilnError.

    With `is_private`, the engine accepts requests during the startup checks, and answers them once the checks have
    passed. A successful compile replaces the canary; the store is checked all the same.
    """

    answers: Answers
    questions: Questions
    jobs: Jobs
    submissions: Submissions
    compiles: Compiles
    fairness: Fairness
    tenancy: Tenancy
    blobs: Blobs
    programs: Programs
    keyring: Keyring
    notary: Notary
    back_end: CompileEngine
    sandboxes: Collection[Sandbox]
    readiness: Readiness
    is_farm: bool
    is_private: bool
    ending: Shutdown = field(default_factory=Shutdown)
    """Set at shutdown, to end the requests that still wait for an answer."""
    _is_closing: bool = False

    async def start(self) -> Ready:
        """Start the fork servers, check that all works, and take up jobs; the weakest isolation of all sandboxes.

        UnavailableError when a check fails. For a private service, the checks still run when this returns.
        """
        ready = min(
            await asyncio.gather(*(sandbox.start() for sandbox in self.sandboxes)),
            key=lambda each: Level(each.level).strength,
        )
        if self.is_farm:
            # Workers compile: programs that were compiled with less isolation than this are not trusted.
            ready = replace(ready, level=self.notary.isolation, mechanisms=(), shortcomings=())
        else:
            # Before any job runs: programs are signed with this level, and stored programs need at least this level.
            self.notary.isolation = ready.level
            self.keyring.signer()
        self.readiness.begin(gives_way=self.is_private)
        if not self.is_private:
            await self.readiness.started()
        await self.back_end.start()
        await self.jobs.start()
        return ready

    async def close(self) -> None:
        self.announce_end()
        for part in (self.readiness, self.jobs, self.submissions, self.answers, self.compiles, self.back_end):
            await part.close()
        await asyncio.gather(*(sandbox.close() for sandbox in self.sandboxes))

    def announce_end(self) -> None:
        """Report the service as not ready from now on. Requests are still served."""
        self._is_closing = True

    def drain(self) -> None:
        """Report the service as not ready, accept no more jobs, and end every wait for one."""
        self.announce_end()
        self.jobs.drain()

    async def program(self, digest: str) -> Entry:
        """The entry of a program that the caller may read. NotFoundError when there is none."""
        entry = await self.programs.entry(digest) if await self.tenancy.allows(digest) else None
        if entry is None:
            raise NotFoundError(f"There is no program {digest}.")
        return entry

    async def check(self) -> None:
        """Raise UnavailableError when the service shuts down, or when a part that a compile needs fails."""
        if self._is_closing:
            raise UnavailableError("The service is shutting down.")
        await self.readiness.require()
