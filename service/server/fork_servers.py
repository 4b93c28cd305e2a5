"""The fork servers of a service, whose processes are begun before its own modules are imported.

One has graphs compiled, unless a farm does that, and another requests read. A private service, which has one caller,
leaves both to the first.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from service.sandbox.spawn import Spawned
from service.sandbox.warm_ups import AFTERWARDS, COMPILING, READING

if TYPE_CHECKING:
    from service.sandbox.sandbox import Sandbox
    from service.settings import Settings


class ForkServers:
    """None to start with. What is begun, and started by no sandbox, has to be abandoned."""

    def __init__(self) -> None:
        self._spawned: dict[str, Spawned] = {}
        self.is_for_one = False
        """Whether there is one caller, and one fork server."""

    def begin_for_one(self) -> None:
        """Begin that of a private service, whose settings need not be known yet."""
        self.is_for_one = True
        self._spawned[COMPILING] = Spawned((COMPILING,))

    def begin(self, settings: Settings) -> None:
        """Begin those of a service with these settings, and have them get ready."""
        for warm_up in self._wanted(settings):
            spawned = self._spawned.get(warm_up)
            if spawned is None or not spawned.suits(settings.isolation):
                self._abandon(warm_up)
                spawned = self._spawned[warm_up] = Spawned((warm_up,), settings.isolation)
            spawned.begin(settings.isolation, gives_way=self._gives_way, later=self._later)
        for warm_up in self._spawned.keys() - self._wanted(settings):
            self._abandon(warm_up)

    def sandboxes(self, settings: Settings) -> tuple[Sandbox, Sandbox | None]:
        """What reads, and what compiles, None where a farm does. They may be the same."""
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

    @property
    def _gives_way(self) -> bool:
        # The one caller waits for its compile; there is nobody to be answered soon beside it.
        return not self.is_for_one

    @property
    def _later(self) -> tuple[str, ...]:
        # As that caller waits for its first compile, the compiler is used for the first time by that.
        return (COMPILING, AFTERWARDS) if self.is_for_one else (AFTERWARDS,)

    def abandon(self) -> None:
        """End those that no sandbox has started."""
        for warm_up in tuple(self._spawned):
            self._abandon(warm_up)

    def _abandon(self, warm_up: str) -> None:
        if warm_up in self._spawned:
            self._spawned.pop(warm_up).abandon()

    def _wanted(self, settings: Settings) -> tuple[str, ...]:
        if settings.farm:
            return (READING,)
        return (COMPILING,) if self.is_for_one else (COMPILING, READING)
