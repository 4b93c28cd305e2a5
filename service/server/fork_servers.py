"""The fork servers of a service, which are started before the modules of the service are imported.

One compiles, unless a farm does, and one reads requests. A private service uses the first for both.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from service.sandbox.levels import Wall
from service.sandbox.spawn import AFTERWARDS, COMPILING, READING, Spawned

if TYPE_CHECKING:
    from service.sandbox.sandbox import Sandbox
    from service.settings import Settings


class ForkServers:
    """Empty at first. Fork servers that are begun, but not started by a sandbox, have to be abandoned."""

    def __init__(self) -> None:
        self._spawned: dict[str, Spawned] = {}
        self.is_for_one = False
        """Whether there is one caller, and one fork server."""
        self._gives_way, self._later = True, (AFTERWARDS,)

    def begin_for_one(self) -> None:
        """Begin the fork server of a private service. Its settings need not be known yet."""
        self.is_for_one = True
        # The one caller waits for its first compile, so that it comes before any rehearsal, and before anything else.
        self._gives_way, self._later = False, (COMPILING, AFTERWARDS)
        self._begin(COMPILING, Wall.AUTO)

    def begin(self, settings: Settings) -> None:
        """Begin the fork servers of a service with these settings."""
        wanted, wall = self._wanted(settings), settings.isolation
        # That of a private service was begun without its settings.
        for warm_up in [each for each, begun in self._spawned.items() if each not in wanted or begun.wall != wall]:
            self._spawned.pop(warm_up).abandon()
        for warm_up in wanted:
            if warm_up not in self._spawned:
                self._begin(warm_up, wall)

    def _begin(self, warm_up: str, wall: Wall) -> None:
        self._spawned[warm_up] = Spawned((warm_up,), wall, gives_way=self._gives_way, later=self._later)

    def sandboxes(self, settings: Settings) -> tuple[Sandbox, Sandbox | None]:
        """The sandboxes that read and compile; None for a farm's. They may be the same."""
        from service.sandbox.sandbox import Sandbox

        made = {
            warm_up: Sandbox(
                (warm_up,),
                max_output_mib=settings.compile_output_mib,
                wall=settings.isolation,
                required=settings.require_isolation,
                gives_way=self._gives_way,
                later=self._later,
                spawn=partial(self._spawned.pop, warm_up, None),
            )
            for warm_up in self._wanted(settings)
        }
        return next(reversed(made.values())), made.get(COMPILING)

    def abandon(self) -> None:
        while self._spawned:
            self._spawned.popitem()[1].abandon()

    def _wanted(self, settings: Settings) -> tuple[str, ...]:
        if settings.farm:
            return (READING,)
        return (COMPILING,) if self.is_for_one else (COMPILING, READING)
