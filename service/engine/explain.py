"""What the store has for an action: its measured schedules, the reason of a miss, and what differs from the nearest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from service.action import GRAPH, Action
from service.identity.tenancy import Tenancy
from service.store.nearest import Neighbour
from service.store.programs import DAMAGED, MEASURE, Entry, Miss, Programs
from service.wire.answers import Difference
from tensorkiln.errors import NotFoundError
from tensorkiln.spec import CacheInfo

_OFF, _PREFER, _REQUIRE = "off", "prefer", "require"
FIRST_REQUEST: Final = "first request"
NOT_READ: Final = CacheInfo(status="miss", reason="the caller does not read the store")
_SALT: Final = "salt"


class Tunings:
    """Resolves the option `tuned` of actions to the SHA-256 of stored measurements.

    These are the result of an action with `tuned` = MEASURE, and shared by callers with the same salt.
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


def differences_from(neighbour: Neighbour | None, mine: Mapping[str, Any]) -> tuple[Difference, ...]:
    """The components `mine` that differ from those of the nearest program, except the salt, with both values."""
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
