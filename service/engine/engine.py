"""The parts that the routes call, and their life from the start to the end."""

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
    """The compiler with its store; `wiring.engine_of` makes one. What routes call raises TensorkilnError alone.

    One that `is_private` takes requests while it sees whether everything works, and answers none before it has seen: a
    compile of theirs that ends well replaces the canary, and the store is looked at.
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
    """Those who wait for an answer are let go."""
    _is_closing: bool = False

    async def start(self) -> Ready:
        """Start the fork servers and see that everything works; what holds for the jobs of all.

        A private service has only begun to see when this returns.
        """
        ready = min(
            await asyncio.gather(*(sandbox.start() for sandbox in self.sandboxes)),
            key=lambda each: Level(each.level).strength,
        )
        if self.is_farm:
            # What compiles is a worker; of those, what is less confined is not believed.
            ready = replace(ready, level=self.notary.isolation, mechanisms=(), shortcomings=())
        else:
            # Before any job is taken up: what it compiles is signed with this level, what it finds has to have it.
            self.notary.isolation = ready.level
            self.keyring.signer()
        self.readiness.begin(gives_way=self.is_private)
        if not self.is_private:
            await self.readiness.started()
        await self.back_end.start()
        await self.jobs.start()
        return ready

    async def close(self) -> None:
        """Cancel what is under way and end every process."""
        self.announce_end()
        for part in (self.readiness, self.jobs, self.submissions, self.answers, self.compiles, self.back_end):
            await part.close()
        await asyncio.gather(*(sandbox.close() for sandbox in self.sandboxes))

    def announce_end(self) -> None:
        """From now on the service does not call itself ready; whoever has not heard of it is served."""
        self._is_closing = True

    def drain(self) -> None:
        """From now on the service accepts no job either, and holds no answer back."""
        self.announce_end()
        self.jobs.drain()

    async def program(self, digest: str) -> Entry:
        """The entry of a program that the caller may read. NotFoundError when there is none."""
        entry = await self.programs.entry(digest) if await self.tenancy.allows(digest) else None
        if entry is None:
            raise NotFoundError(f"There is no program {digest}.")
        return entry

    async def check(self) -> None:
        """UnavailableError when the service is shutting down, or a part of it fails that a compile needs."""
        if self._is_closing:
            raise UnavailableError("The service is shutting down.")
        await self.readiness.require()
