"""Compiled programs by their action digest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Final

from service.action import Action, differences

from .blobs import Blobs
from .records import Records

FIRST_REQUEST: Final = "first request"
# Requests for one graph beyond this many are not searched for the nearest.
_MAX_NEIGHBOURS: Final = 64


@dataclass(frozen=True, slots=True)
class Entry:
    """What was compiled: digests of the program's record, of its artifacts, and of its stages' dumps by name."""

    program: str
    artifacts: tuple[str, ...]
    stages: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def blobs(self) -> tuple[str, ...]:
        """Everything that must be there for the entry to be of use."""
        return (self.program, *self.artifacts, *self.stages.values())


@dataclass(frozen=True, slots=True)
class Miss:
    """Nothing usable is stored, and why."""

    reason: str


class Programs:
    """The programs whose records are in `records` and whose bytes are in `blobs`."""

    def __init__(self, records: Records, blobs: Blobs) -> None:
        self._records = records
        self._blobs = blobs

    async def entry(self, digest: str) -> Entry | None:
        """The entry of an action digest, whether or not its blobs are there."""
        record = await self._records.get(_path(digest))
        if record is None:
            return None
        return Entry(record["program"], tuple(record["artifacts"]), record["stages"])

    async def find(self, action: Action, *, with_dumps: bool) -> Entry | Miss:
        """A complete entry of `action`, or why there is none.

        The reason names the component that differs from the nearest earlier request for the same graph.
        """
        entry = await self.entry(action.digest)
        if entry is None:
            return Miss(await self._nearest(action))
        if with_dumps and not entry.stages:
            return Miss("the stored program has no stage dumps")
        if not await self._blobs.holds(entry.blobs):
            return Miss("the stored program was missing a blob or had a damaged one")
        return entry

    async def save(self, action: Action, entry: Entry) -> None:
        """Make `entry`, whose blobs are stored, the answer of `action`."""
        await self._records.put(_path(action.digest), asdict(entry))
        await self._records.put(f"{_neighbours(action)}/{action.digest}", action.components)

    async def _nearest(self, action: Action) -> str:
        best: tuple[str, ...] | None = None
        for name in await self._records.names(_neighbours(action), _MAX_NEIGHBOURS):
            components = await self._records.get(f"{_neighbours(action)}/{name}")
            found = differences(action.components, components or {})
            if found and (best is None or len(found) < len(best)):
                best = found
            elif components is not None and not found:
                return "the stored program was damaged"
        return f"differs in {', '.join(best)}" if best else FIRST_REQUEST


def _path(digest: str) -> str:
    return f"programs/{digest[:2]}/{digest}"


def _neighbours(action: Action) -> str:
    return f"graphs/{action.graph[:2]}/{action.graph}"
