"""Compiled programs by their action digest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from service.action import Action
from service.observe.instruments import count_corrupt
from service.trust.notary import Notary, matches
from tensorkiln.errors import UntrustedArtifactError
from tensorkiln.trust import SignedRecord

from .blobs import Blobs
from .records import Records

_SIGNED: Final = "signed"


@dataclass(frozen=True, slots=True)
class Entry:
    """What was compiled: digests of the program's record, of its artifacts, and of its stages' dumps by name.

    `signature` is the `SignedRecord` that says so, as JSON; empty until the entry is saved.
    """

    program: str
    artifacts: tuple[str, ...]
    stages: Mapping[str, str] = field(default_factory=dict[str, str])
    signature: str = ""

    @property
    def blobs(self) -> tuple[str, ...]:
        """Everything that must be there for the entry to be of use."""
        return (self.program, *self.artifacts, *self.stages.values())


@dataclass(frozen=True, slots=True)
class Miss:
    """Nothing usable is stored, and why; `reason` is empty when nothing is."""

    reason: str = ""


class Programs:
    """The programs whose records are in `records` and whose bytes are in `blobs`."""

    def __init__(self, records: Records, blobs: Blobs, notary: Notary) -> None:
        self._records = records
        self._blobs = blobs
        self._notary = notary

    async def entry(self, digest: str) -> Entry | None:
        """The entry of an action digest, whether or not its blobs are there; None when its signature is not valid."""
        signed = await self._signed(digest)
        return _entry(signed) if signed is not None else None

    async def find(self, action: Action, *, with_dumps: bool) -> Entry | Miss:
        """A complete entry of `action`, or why there is none."""
        signed = await self._signed(action.digest)
        if signed is None or not matches(signed.record, action):
            return Miss()
        entry = _entry(signed)
        if with_dumps and not entry.stages:
            return Miss("the stored program has no stage dumps")
        if not await self._blobs.holds(entry.blobs):
            count_corrupt("incomplete")
            return Miss("the stored program was missing a blob or had a damaged one")
        self._records.touch(_path(action.digest))
        return entry

    async def save(self, action: Action, entry: Entry) -> Entry:
        """Make `entry`, whose blobs are stored, the answer of `action`; the entry with its signature."""
        signed = self._signed_now(action, entry)
        await self._records.put(_path(action.digest), {_SIGNED: signed.signature}, durable=True)
        return signed

    async def offer(self, action: Action, entry: Entry) -> Entry:
        """Make `entry` the answer of `action` unless it has one that is of use: of several workers the first counts."""
        signed = self._signed_now(action, entry)
        if await self._records.create(_path(action.digest), {_SIGNED: signed.signature}, durable=True):
            return signed
        earlier = await self.find(action, with_dumps=bool(entry.stages))
        return earlier if isinstance(earlier, Entry) else await self.save(action, entry)

    async def doubt(self, action: Action) -> UntrustedArtifactError | None:
        """Why what is stored of `action` is not believed here, where settings or keys are the reason."""
        record = await self._records.get(_path(action.digest))
        return self._notary.doubt(record.get(_SIGNED, ""), action.digest) if record is not None else None

    def _signed_now(self, action: Action, entry: Entry) -> Entry:
        signed = self._notary.sign(action, entry.program, entry.artifacts, entry.stages)
        return replace(entry, signature=signed.to_json().decode())

    async def _signed(self, digest: str) -> SignedRecord | None:
        record = await self._records.get(_path(digest))
        return self._notary.believes(record.get(_SIGNED, ""), digest) if record is not None else None


def _entry(signed: SignedRecord) -> Entry:
    record = signed.record
    return Entry(record.program, record.artifacts, record.stages, signed.to_json().decode())


def _path(digest: str) -> str:
    return f"programs/{digest[:2]}/{digest}"
