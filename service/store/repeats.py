"""Answers to earlier requests, by the digest of their bodies: an identical request is not even parsed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import Any

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

from service.trust.notary import SEAL, Notary
from tensorkiln.errors import UnavailableError
from tensorkiln.trust import is_at_least
from tensorkiln.trust.record import Sha256

from .blobs import Blobs
from .programs import path_of
from .records import Records

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Repeat:
    """An answer, and what it needs: stored blobs and programs (action digests), valid `keys`, enough `isolation`."""

    answer: bytes
    blobs: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    isolation: str = field(kw_only=True)


class RepeatRecord(BaseModel):
    """What the store has of a `Repeat`: the digest of its answer instead of that, and `keys` but for its own seal's."""

    model_config = ConfigDict(frozen=True)

    answer: Sha256
    blobs: tuple[Sha256, ...]
    programs: tuple[Sha256, ...]
    keys: tuple[str, ...]
    isolation: str


@dataclass(eq=False)
class Repeats:
    """Answers in `records` and `blobs`, sealed by `notary`, and up to `memory_bytes` of them in memory.

    `epoch` (the compiler's build and the operator's salt) is part of the key: answers of another build are not found.
    """

    _records: Records
    _blobs: Blobs
    _epoch: str
    _memory_bytes: int
    _notary: Notary
    _memory: OrderedDict[str, Repeat] = field(default_factory=OrderedDict[str, Repeat], init=False)
    _held: int = field(default=0, init=False)

    def key(self, body_digest: str) -> str:
        """The key of a body with this SHA-256."""
        return sha256(f"{self._epoch}\n{body_digest}".encode()).hexdigest()

    async def find(self, key: str) -> Repeat | None:
        """The answer to an identical request, if all that it names is undamaged; its programs count as used too."""
        repeat = self._memory.get(key) or await self._stored(key)
        if repeat is None:
            return None
        is_true = (
            is_at_least(repeat.isolation, self._notary.isolation)
            and all(map(self._notary.is_valid, repeat.keys))
            and await self._blobs.holds(repeat.blobs)
            and await self._records.in_use([path_of(program) for program in repeat.programs])
        )
        if not is_true:
            self._forget(key)
            return None
        self.remember(key, repeat)
        self._records.touch(_path(key))
        return repeat

    def remember(self, key: str, repeat: Repeat) -> None:
        """Keep the answer for this key in memory."""
        self._forget(key)
        if len(repeat.answer) > self._memory_bytes:
            return
        self._memory[key] = repeat
        self._held += len(repeat.answer)
        while self._held > self._memory_bytes:
            _, oldest = self._memory.popitem(last=False)
            self._held -= len(oldest.answer)

    async def save(self, key: str, repeat: Repeat) -> None:
        """Store the answer for this key; if the store does not accept it, only keep it in memory."""
        try:
            by = await self._put(key, repeat)
        except UnavailableError as error:
            _log.warning("the answer for repeated requests was not stored", reason=error.message)
            self.remember(key, repeat)
        else:
            self.remember(key, replace(repeat, keys=(*repeat.keys, by)))

    async def _put(self, key: str, repeat: Repeat) -> str:
        """Store a sealed answer; the id of the key that sealed it."""
        digest = await self._blobs.put(repeat.answer)
        said = RepeatRecord.model_validate({**asdict(repeat), "answer": digest})
        record = self._notary.sealed("answer", key, said.model_dump(mode="json"))
        await self._records.put(_path(key), record)
        return record[SEAL]["key"]

    async def _stored(self, key: str) -> Repeat | None:
        stored = await self._records.get(_path(key))
        if stored is None or self._notary.opened("answer", key, stored) is None:
            return None
        said = stated(stored)
        answer = await self._blobs.get(said.answer) if said is not None else None
        if said is None or answer is None:
            return None
        return Repeat(answer, said.blobs, said.programs, (*said.keys, stored[SEAL]["key"]), isolation=said.isolation)

    def _forget(self, key: str) -> None:
        gone = self._memory.pop(key, None)
        if gone is not None:
            self._held -= len(gone.answer)


def _path(key: str) -> str:
    return f"requests/{key[:2]}/{key}"


def stated(stored: Mapping[str, Any] | None) -> RepeatRecord | None:
    """The content of a stored record, not verified; None when it is not what this version writes."""
    try:
        return RepeatRecord.model_validate(stored)
    except ValidationError:
        return None
