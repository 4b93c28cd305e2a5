"""Finds or compiles the program of an action, and explains a miss by what the store has."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Hashable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final
from weakref import WeakValueDictionary

from service.action import GRAPH, Action
from service.fairness.lane import Turn
from service.fairness.turns import Turns
from service.identity.caller import caller
from service.identity.tenancy import Tenancy
from service.observe.instruments import count_cache
from service.process.periodic import Interruption
from service.sandbox.connection import Spending
from service.store.nearest import Nearest, Neighbour, shown
from service.store.programs import DAMAGED, MEASURE, Entry, Miss, Programs
from service.wire.answers import SAME_ACTION, Components, Difference, ExplainedAction
from tensorkiln.errors import NotFoundError
from tensorkiln.spec import CacheInfo

from .flights import Flights
from .order import CompileEngine, OnProgress, Order, Progress, Rendered, Wanted

_OFF, _REQUIRE = "off", "require"
FIRST_REQUEST: Final = "first request"
NOT_READ: Final = CacheInfo(status="miss", reason="the caller does not read the store")
_SALT: Final = "salt"


class Overtaken(Exception):
    """Another caller has started the work: `flights` has it under its shared key now."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program in canonical names, as JSON; its entry in the store; and whether it was a hit, as `cache`."""

    action: Action
    program: bytes
    entry: Entry
    cache: Mapping[str, Any]
    rendered: Rendered | None = None

    @property
    def blobs(self) -> Sequence[str]:
        """The digests of its blobs, with those of the measurements it was compiled with."""
        return [*self.entry.blobs, *([self.action.tuned] if self.action.is_tuned else [])]


@dataclass(eq=False)
class Compiles:
    """Finds programs in the store, and compiles missing ones; concurrent requests share one compile (single-flight).

    Each tenant waits for its own turn until one of them compiles: a refusal or delay affects only its own tenant.
    """

    _engine: CompileEngine
    _turns: Turns
    _tenancy: Tenancy
    _programs: Programs
    _nearest: Nearest
    _flights: Flights[Compiled, Progress] = field(default_factory=Flights[Compiled, Progress], init=False)
    # Set when somebody's turn for the work has come; kept by those who wait for theirs.
    _begun: WeakValueDictionary[Hashable, Interruption] = field(default_factory=WeakValueDictionary, init=False)

    async def program(self, wanted: Wanted, on_progress: OnProgress = lambda _: None) -> Compiled:
        """Find or compile the program of `wanted`. CompileError when it fails. `on_progress` gets the stages."""
        action = await self._settled(wanted.action)
        if action is None:
            measuring = replace(wanted, action=wanted.action.with_tuned(MEASURE), with_dumps=False, renaming=None)
            measured = await self._program(measuring, on_progress)
            action = wanted.action.with_tuned(measured.entry.program)
        return await self._program(replace(wanted, action=action), on_progress)

    async def explain(self, asked: Action, hit: CacheInfo, *, with_dumps: bool) -> ExplainedAction:
        """What the caller would be told of the compile of an action: `hit` if its program is stored."""
        reads_store = self._tenancy.reads_store
        try:
            action = (await self._settled(asked) if reads_store else None) or asked
        except NotFoundError as error:
            return _explained(asked, missed(error.message))
        if not reads_store:
            return _explained(action, NOT_READ)
        found = await self._programs.find(action, with_dumps=with_dumps)
        if not isinstance(found, Miss):
            return _explained(action, hit, stored=True)
        neighbour = None if found.reason else await self._nearest.to(action, self._tenancy.scope)
        is_stored = with_dumps and not isinstance(await self._programs.find(action, with_dumps=False), Miss)
        differences = differences_from(neighbour)
        return _explained(action, miss_of(found, neighbour), stored=is_stored, differences=differences)

    async def _settled(self, action: Action) -> Action | None:
        """The action with the SHA-256 of stored measurements, or without any; None when they have to be made first.

        They are the result of an action with `tuned` = MEASURE, and shared by callers with the same salt.
        NotFoundError when it requires or names measurements that are not stored; ForbiddenError when it is to measure,
        and the caller may not read the store.
        """
        if action.tuned == _OFF:
            return action
        if action.tuned == MEASURE:
            self._tenancy.require_store()
        found = await self._measurements(action)
        if action.is_tuned and action.tuned != found:
            raise NotFoundError(
                f"The measurements {action.tuned} are not of this graph, target and build, or were evicted; compile "
                'with tuned="require" to use the current ones.'
            )
        if found is not None:
            return action.with_tuned(found)
        if action.tuned == _REQUIRE:
            raise NotFoundError(
                f"No schedules of this graph were measured for {action.target.get('cpu') or action.target.get('arch')} "
                'by this build of the compiler. Measure them by tuned="measure", which `kiln tune` does, or compile '
                'with tuned="prefer".'
            )
        return None if action.tuned == MEASURE else action.with_tuned(_OFF)

    async def _measurements(self, action: Action) -> str | None:
        if not self._tenancy.reads_store:
            return None
        found = await self._programs.find(action.with_tuned(MEASURE), with_dumps=False)
        return found.program if isinstance(found, Entry) else None

    async def _program(self, wanted: Wanted, on_progress: OnProgress) -> Compiled:
        work = (wanted.action.digest, wanted.with_dumps, self._tenancy.equals)
        own = (*work, caller().tenant)
        return await self._flights.join(
            own, lambda on_progress: self._find_or_compile(wanted, on_progress, work, own), on_progress
        )

    async def close(self) -> None:
        await self._flights.close()
        await self._nearest.settle()

    async def _find_or_compile(
        self, wanted: Wanted, on_progress: OnProgress, work: Hashable, own: Hashable
    ) -> Compiled:
        size = len(wanted.graph)
        if not self._tenancy.reads_store:
            return await self._compile(wanted, NOT_READ.model_dump(mode="json"), on_progress, self._turns.turn(size))
        while not self._flights.has(work):
            found = await self._programs.load(wanted.action, with_dumps=wanted.with_dumps)
            if not isinstance(found, Miss):
                count_cache(SAME_ACTION.status, SAME_ACTION.reason)
                entry, program = found
                return Compiled(wanted.action, program, entry, SAME_ACTION.model_dump(mode="json"))
            neighbour = None if found.reason else await self._nearest.to(wanted.action, self._tenancy.scope)
            cache = miss_of(found, neighbour).model_dump(mode="json")
            with suppress(Overtaken):
                return await self._compile(wanted, cache, on_progress, self._first_turn(work, own, size))
        return await self._flights.follow(work, on_progress)

    @asynccontextmanager
    async def _first_turn(self, work: Hashable, own: Hashable, size: int) -> AsyncGenerator[Turn]:
        """As `Turns.turn`, for the work under `own`; on its turn it is shared as `work`. Overtaken if another is."""
        if self._flights.has(work):  # shared while this caller looked for the program
            raise Overtaken
        begun = self._begun.setdefault(work, Interruption())
        async with AsyncExitStack() as held:
            try:
                async with begun.before():
                    turn = await held.enter_async_context(self._turns.turn(size))
            except TimeoutError:
                raise Overtaken from None
            if begun.is_set():  # its turn came in the same moment
                turn.cost_s = 0.0
                raise Overtaken
            self._flights.share(own, work)
            begun.set()
            del self._begun[work]
            yield turn

    async def _compile(
        self,
        wanted: Wanted,
        cache: Mapping[str, Any],
        on_progress: OnProgress,
        turns: AbstractAsyncContextManager[Turn],
    ) -> Compiled:
        self._tenancy.require_compile()
        async with turns as turn:
            count_cache(cache["status"], cache["reason"])
            cost = Spending(turn.charge)

            def computed() -> None:
                turn.cost_s = cost.run_s
                turn.end()

            order = Order(wanted, cache, not self._tenancy.reads_store, cost, computed)
            try:
                made = await self._engine.make(order, on_progress)
            finally:
                turn.cost_s = cost.run_s
        if wanted.action.tuned != MEASURE:
            self._nearest.add(wanted.action, self._tenancy.scope)
        return Compiled(wanted.action, made.program, made.entry, cache, made.rendered)


def missed(reason: str) -> CacheInfo:
    """A miss that names no nearest program."""
    return CacheInfo(status="miss", reason=reason)


def miss_of(miss: Miss, neighbour: Neighbour | None) -> CacheInfo:
    """A miss with the nearest stored program. Its `differs` has GRAPH when that program is of another graph."""
    if miss.reason or neighbour is None:
        return missed(miss.reason or FIRST_REQUEST)
    if not neighbour.differs:
        return missed(DAMAGED)
    reason = FIRST_REQUEST if GRAPH in neighbour.differs else f"differs in {', '.join(neighbour.differs)}"
    return CacheInfo(status="miss", reason=reason, nearest=neighbour.digest, differs=tuple(neighbour.differs))


def differences_from(neighbour: Neighbour | None) -> tuple[Difference, ...]:
    """The components that differ from those of the nearest program, except the salt, with both values."""
    differs = {} if neighbour is None else {name: _apart(*values) for name, values in neighbour.differs.items()}
    return tuple(
        Difference(component=name, requested=here, stored=there)
        for name, (here, there) in differs.items()
        if name != _SALT
    )


def _apart(here: Any, there: Any) -> tuple[Any, Any]:
    """Of two lists, only the elements that the other lacks: lists of sixty CPU features are hard to compare."""
    if not isinstance(here, list | tuple) or not isinstance(there, list | tuple):
        return here, there
    return [each for each in here if each not in there], [each for each in there if each not in here]


def _explained(action: Action, cache: CacheInfo, *, stored: bool = False, **more: Any) -> ExplainedAction:
    components = Components.model_validate(shown(action))
    return ExplainedAction(digest=action.digest, components=components, stored=stored, cache=cache, **more)
