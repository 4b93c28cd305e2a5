"""Compiled programs by their action digest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final

from pydantic import Field, TypeAdapter, ValidationError

from service.action import Action
from service.observe.instruments import count_corrupt
from service.trust.notary import Notary, matches
from tensorkiln.errors import UntrustedArtifactError

from .blobs import Blobs
from .records import Records

MEASURE: Final = "measure"
"""The option `tuned` of an action whose result is measurements."""
DAMAGED: Final = "the stored program was damaged"
_SIGNED: Final = "signed"
_SECONDS: Final = "seconds"
_TIMES: Final = TypeAdapter(dict[str, Annotated[float, Field(ge=0.0, allow_inf_nan=False)]])


@dataclass(frozen=True, slots=True)
class Entry:
    """A compiled program: digests of the program's record, of its artifacts, and of its stages' dumps by name.

    `seconds` is the time of each stage, not signed. `signature` is the `SignedRecord` of the rest, as JSON, once saved.
    """

    program: str
    artifacts: tuple[str, ...]
    stages: Mapping[str, str] = field(default_factory=dict[str, str])
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    signature: str = ""
    is_measured: bool = False

    @property
    def blobs(self) -> tuple[str, ...]:
        """The digests of all blobs that the entry needs."""
        return (self.program, *self.artifacts, *self.stages.values())


@dataclass(frozen=True, slots=True)
class Miss:
    """Nothing usable is stored. `reason` says why; empty when nothing is stored at all."""

    reason: str = ""


class Programs:
    """The programs whose records are in `records` and whose bytes are in `blobs`."""

    def __init__(self, records: Records, blobs: Blobs, notary: Notary) -> None:
        self._records = records
        self._blobs = blobs
        self._notary = notary

    async def entry(self, digest: str) -> Entry | None:
        """The entry of an action digest, whether or not its blobs are there; None if not trusted, or measurements."""
        entry = await self._entry(digest)
        return None if entry is not None and entry.is_measured else entry

    async def find(self, action: Action, *, with_dumps: bool) -> Entry | Miss:
        """A complete entry of `action`, or why there is none."""
        entry = await self._entry(action.digest, action)
        if entry is None:
            return Miss()
        if with_dumps and not entry.stages:
            return Miss("the stored program has no stage dumps")
        if not await self._blobs.holds(entry.blobs):
            count_corrupt("incomplete")
            return Miss("the stored program was missing a blob or had a damaged one")
        self._records.touch(path_of(action.digest))
        return entry

    async def load(self, action: Action, *, with_dumps: bool) -> tuple[Entry, bytes] | Miss:
        """As `find`, with the program itself."""
        found = await self.find(action, with_dumps=with_dumps)
        if isinstance(found, Miss):
            return found
        program = await self._blobs.get(found.program)
        return (found, program) if program is not None else Miss(DAMAGED)

    async def save(self, action: Action, entry: Entry) -> Entry:
        """Store `entry`, whose blobs are stored, as the result of `action`; the entry with its signature."""
        signed = self._signed_now(action, entry)
        await self._records.put(path_of(action.digest), _content(signed), durable=True)
        return signed

    async def offer(self, action: Action, entry: Entry) -> Entry:
        """As `save`, unless `action` has a usable entry, which is returned then: of several workers the first wins."""
        signed = self._signed_now(action, entry)
        if await self._records.create(path_of(action.digest), _content(signed), durable=True):
            return signed
        earlier = await self.find(action, with_dumps=bool(entry.stages))
        return earlier if isinstance(earlier, Entry) else await self.save(action, entry)

    async def doubt(self, action: Action) -> UntrustedArtifactError | None:
        """Why the stored program of `action` is not trusted here; None unless settings or keys are the reason."""
        record = await self._records.get(path_of(action.digest))
        return self._notary.doubt(record.get(_SIGNED, ""), action.digest) if record is not None else None

    def _signed_now(self, action: Action, entry: Entry) -> Entry:
        signed = self._notary.sign(action, entry.program, entry.artifacts, entry.stages)
        return replace(entry, signature=signed.to_json().decode())

    async def _entry(self, digest: str, action: Action | None = None) -> Entry | None:
        content = await self._records.get(path_of(digest))
        signed = self._notary.believes(content.get(_SIGNED, ""), digest) if content is not None else None
        if content is None or signed is None or not (action is None or matches(signed.record, action)):
            return None
        record = signed.record
        seconds = _seconds(content.get(_SECONDS))
        is_measured = record.request.options.get("tuned") == MEASURE
        return Entry(record.program, record.artifacts, record.stages, seconds, signed.to_json().decode(), is_measured)


def _content(entry: Entry) -> dict[str, Any]:
    return {_SIGNED: entry.signature, _SECONDS: dict(entry.seconds)}


def _seconds(stored: Any) -> dict[str, float]:
    """The times of the stages, which are not signed; empty when they are malformed."""
    try:
        return _TIMES.validate_python(stored)
    except ValidationError:
        return {}


def path_of(digest: str) -> str:
    """Where the record of the program with this action digest is kept."""
    return f"programs/{digest[:2]}/{digest}"
