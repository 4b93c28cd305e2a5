"""The answers of requests that came before, by the digest of their bodies: an identical request is not even parsed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from service.trust.notary import Notary
from tensorkiln.trust import LEVELS, is_at_least

from .blobs import Blobs
from .records import Records

_SEAL: Final = "seal"
_ISOLATION: Final = "isolation"


@dataclass(frozen=True, slots=True)
class Repeat:
    """An answer, the blobs that must be there for it to be true, and the id of the key that vouches for it."""

    answer: bytes
    blobs: tuple[str, ...]
    key: str


class Repeats:
    """Answers in `records` and `blobs`, and up to `memory_bytes` of them in memory.

    `epoch` (the compiler's build and the operator's salt) is part of the key: answers of another build are not found.
    Answers in the store are sealed by `notary`: one that is not is not found, nor one from when less isolation was
    enough.
    """

    def __init__(self, records: Records, blobs: Blobs, epoch: str, memory_bytes: int, notary: Notary) -> None:
        self._records = records
        self._blobs = blobs
        self._notary = notary
        self._epoch = epoch
        self._memory_bytes = memory_bytes
        self._memory: OrderedDict[str, Repeat] = OrderedDict()
        self._held = 0

    def key(self, body_digest: str) -> str:
        """The key of a body with this SHA-256."""
        return sha256(f"{self._epoch}\n{body_digest}".encode()).hexdigest()

    async def find(self, key: str) -> bytes | None:
        """The answer of an identical request, if everything that it names is there and undamaged."""
        repeat = self._memory.get(key) or await self._stored(key)
        if repeat is None:
            return None
        if not self._notary.is_valid(repeat.key) or not await self._blobs.holds(repeat.blobs):
            self._forget(key)
            return None
        self._remember(key, repeat)
        self._records.touch(_path(key))
        return repeat.answer

    def remember(self, key: str, answer: bytes, blobs: Sequence[str], vouching: str) -> None:
        """Give `answer` to requests with this key while this service lives and the key with the id `vouching` is valid.

        For a service of a farm: it has no key to seal an answer with.
        """
        self._remember(key, Repeat(answer, tuple(blobs), vouching))

    async def save(self, key: str, answer: bytes, blobs: Sequence[str]) -> None:
        """Give `answer` to requests with this key from now on."""
        digest = await self._blobs.put(answer)
        # What an answer names was believed, so that it had this level at least.
        content = {"answer": digest, "blobs": list(blobs), _ISOLATION: self._notary.isolation}
        seal = self._notary.seal({"request": key, **content})
        await self._records.put(_path(key), {**content, _SEAL: seal})
        self._remember(key, Repeat(answer, tuple(blobs), seal["key"]))

    async def _stored(self, key: str) -> Repeat | None:
        record = await self._records.get(_path(key))
        if record is None:
            return None
        seal = record.pop(_SEAL, {})
        # What the record itself says about its place does not count.
        if not self._notary.has_sealed("answer", {**record, "request": key}, seal):
            return None
        if not is_at_least(record.get(_ISOLATION, LEVELS[0]), self._notary.isolation):
            return None
        answer = await self._blobs.get(record["answer"])
        return Repeat(answer, tuple(record["blobs"]), seal["key"]) if answer is not None else None

    def _remember(self, key: str, repeat: Repeat) -> None:
        self._forget(key)
        if len(repeat.answer) > self._memory_bytes:
            return
        self._memory[key] = repeat
        self._held += len(repeat.answer)
        while self._held > self._memory_bytes:
            _, oldest = self._memory.popitem(last=False)
            self._held -= len(oldest.answer)

    def _forget(self, key: str) -> None:
        gone = self._memory.pop(key, None)
        if gone is not None:
            self._held -= len(gone.answer)


def _path(key: str) -> str:
    return f"requests/{key[:2]}/{key}"
