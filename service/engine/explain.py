"""Explains what the store has for a compile request, its misses and its measured schedules, without compiling it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from service.action import GRAPH, Action
from service.identity.tenancy import Tenancy
from service.store.nearest import Nearest, Neighbour, shown
from service.store.programs import DAMAGED, MEASURE, Entry, Miss, Programs
from service.wire.answers import SAME_ACTION, SAME_REQUEST, Components, Difference, ExplainedAction, Explanation
from tensorkiln.errors import NotFoundError
from tensorkiln.spec import CacheInfo

from .order import Wanted

_OFF, _PREFER, _REQUIRE = "off", "prefer", "require"
FIRST_REQUEST: Final = "first request"
NOT_READ: Final = CacheInfo(status="miss", reason="the caller does not read the store")
_SALT: Final = "salt"


class Tunings:
    """Resolves the option `tuned` of actions to stored measurements.

    Measurements are the result of an action with `tuned` = MEASURE: stored among `programs`, signed, and shared by
    callers with the same salt. An action that is compiled with them has their SHA-256 as its option `tuned`.
    """

    def __init__(self, tenancy: Tenancy, programs: Programs) -> None:
        self._programs = programs
        self._tenancy = tenancy

    async def settled(self, action: Action) -> Action | None:
        """The action with the stored measurements, or without any; None when they have to be made first.

        NotFoundError when it requires or names measurements that are not stored; ForbiddenError when it is to measure,
        and the caller may not read the store.
        """
        if action.tuned == _OFF:
            return action
        if action.tuned == MEASURE:
            self._tenancy.require_store()
        found = await self._stored(action)
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

    async def _stored(self, action: Action) -> str | None:
        if not self._tenancy.reads_store:
            return None
        found = await self._programs.find(action.with_tuned(MEASURE), with_dumps=False)
        return found.program if isinstance(found, Entry) else None


def to_measure(wanted: Wanted) -> Wanted:
    """The same target of a request with the action that measures schedules for it."""
    return replace(wanted, action=wanted.action.with_tuned(MEASURE), with_dumps=False, renaming=None)


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
    return CacheInfo(status="miss", reason=reason, nearest=neighbour.digest, differs=neighbour.differs)


class Misses:
    """Explains misses of the caller by the programs in its own part of the store."""

    def __init__(self, nearest: Nearest, tenancy: Tenancy) -> None:
        self._nearest = nearest
        self._tenancy = tenancy

    async def neighbour(self, action: Action, miss: Miss) -> Neighbour | None:
        """The nearest stored program; None when there is none, or when the miss has a reason already."""
        return None if miss.reason else await self._nearest.to(action, self._tenancy.scope)

    async def explain(self, action: Action, miss: Miss) -> dict[str, Any]:
        """The `cache` of an answer, as JSON."""
        return miss_of(miss, await self.neighbour(action, miss)).model_dump(mode="json")

    async def remember(self, action: Action) -> None:
        """Add `action`, which is stored, to the index that explains later misses."""
        await self._nearest.add(action, self._tenancy.scope)


class Explain:
    """Looks actions up among `programs`. Nothing is said about the store to a caller who may not read it."""

    def __init__(self, tenancy: Tenancy, programs: Programs, misses: Misses, tunings: Tunings) -> None:
        self._tenancy = tenancy
        self._programs = programs
        self._misses = misses
        self._tunings = tunings

    async def all(self, actions: Sequence[Action], is_repeated: bool, *, with_dumps: bool) -> Explanation:
        """Each of `actions`: its components, whether its program is stored, and what is nearest to it if not.

        `is_repeated` is whether the same request has a stored answer.
        """
        hit = SAME_REQUEST if is_repeated else SAME_ACTION
        explained = (self._one(action, hit, with_dumps) for action in actions)
        return Explanation(actions=tuple(await asyncio.gather(*explained)))

    async def _one(self, asked: Action, hit: CacheInfo, with_dumps: bool) -> ExplainedAction:
        reads_store = self._tenancy.reads_store
        try:
            action = (await self._tunings.settled(asked) if reads_store else None) or asked
        except NotFoundError as error:
            lacking = Components.model_validate(shown(asked))
            return ExplainedAction(digest=asked.digest, components=lacking, stored=False, cache=missed(error.message))
        components = Components.model_validate(shown(action))
        if not reads_store:
            return ExplainedAction(digest=action.digest, components=components, stored=False, cache=NOT_READ)
        found = await self._programs.find(action, with_dumps=with_dumps)
        if not isinstance(found, Miss):
            return ExplainedAction(digest=action.digest, components=components, stored=True, cache=hit)
        neighbour = await self._misses.neighbour(action, found)
        is_stored = with_dumps and not isinstance(await self._programs.find(action, with_dumps=False), Miss)
        return ExplainedAction(
            digest=action.digest,
            components=components,
            stored=is_stored,
            cache=miss_of(found, neighbour),
            differences=_differences(shown(action), neighbour),
        )


def _differences(mine: Mapping[str, Any], neighbour: Neighbour | None) -> tuple[Difference, ...]:
    if neighbour is None:
        return ()
    return tuple(
        Difference(component=name, requested=here, stored=there)
        for name in neighbour.differs
        for here, there in [_apart(_at(mine, name), _at(neighbour.components, name))]
        if name != _SALT
    )


def _at(components: Mapping[str, Any], name: str) -> Any:
    value: Any = components
    for step in name.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _apart(here: Any, there: Any) -> tuple[Any, Any]:
    """Of two lists, only the elements that the other lacks: lists of sixty CPU features are hard to compare."""
    if not isinstance(here, list | tuple) or not isinstance(there, list | tuple):
        return here, there
    return [each for each in here if each not in there], [each for each in there if each not in here]
