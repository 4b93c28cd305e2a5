"""What the store has of a repeated answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from service.trust.notary import Notary
from tensorkiln.trust.record import Sha256

SEAL: Final = "seal"


class RepeatRecord(BaseModel):
    """The digest of an answer, and what must be there for it to be true: blobs, and programs by their action digests.

    `keys` are the ids of those that signed the programs, `isolation` is the level that each was compiled with at least.
    """

    model_config = ConfigDict(frozen=True)

    answer: Sha256
    blobs: tuple[Sha256, ...]
    programs: tuple[Sha256, ...]
    keys: tuple[str, ...]
    isolation: str


def sealed(record: RepeatRecord, key: str, notary: Notary) -> dict[str, Any]:
    """The record of the answer to the request with this key as the store has it, by the word of `notary`."""
    content = record.model_dump(mode="json")
    return {**content, SEAL: notary.seal({**content, "request": key})}


def sealing_key(stored: Mapping[str, Any], key: str, notary: Notary) -> str | None:
    """The id of the key that vouches for a stored record at the place of `key`; None when it is not believed."""
    seal = stored.get(SEAL, {})
    # What the record itself says about its place does not count.
    content = {**{name: value for name, value in stored.items() if name != SEAL}, "request": key}
    return seal["key"] if notary.has_sealed("answer", content, seal) else None


def stated(stored: Mapping[str, Any] | None) -> RepeatRecord | None:
    """What a stored record says, believed or not; None when it says something else than this version writes."""
    try:
        return RepeatRecord.model_validate(stored)
    except ValidationError:
        return None
