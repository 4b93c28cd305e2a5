"""Measured schedules: the measurements that an action is compiled by."""

from __future__ import annotations

from dataclasses import replace

from service.action import Action
from service.identity.tenancy import Tenancy
from service.store.programs import MEASURE, Entry, Programs
from tensorkiln.errors import NotFoundError

from .order import Wanted

_OFF, _PREFER, _REQUIRE = "off", "prefer", "require"


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
