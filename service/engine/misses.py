"""Explains cache misses."""

from __future__ import annotations

from typing import Any, Final

from service.action import GRAPH, Action
from service.identity.tenancy import Tenancy
from service.store.nearest import Nearest, Neighbour
from service.store.programs import DAMAGED, Miss
from tensorkiln.spec import CacheInfo

FIRST_REQUEST: Final = "first request"
NOT_READ: Final = CacheInfo(status="miss", reason="the caller does not read the store")


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
