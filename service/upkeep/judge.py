"""Find the fault of a record: in its bytes, its signature, or the blobs that it needs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from service.store.inventory import (
    BLOBS,
    HISTORY,
    PROGRAMS,
    RECORDS,
    REQUESTS,
    RIGHTS,
    items,
    needed_blobs,
    read,
    signed_record,
)
from service.store.job_records import OPEN_FOLDER, OWNERS_FOLDER, PROGRESS_FOLDER
from service.store.location import ObjectStore
from service.store.records import unsealed
from service.store.repeats import stated
from service.trust.notary import SEAL, Notary
from tensorkiln.errors import RequestError
from tensorkiln.trust.keys import KeySet

JUDGED: Final = (*RECORDS, *HISTORY, OPEN_FOLDER, PROGRESS_FOLDER, OWNERS_FOLDER, RIGHTS)
"""Folders of the records that can be judged."""

Fault: TypeAlias = Literal["corrupt", "untrusted", "incomplete"]


async def fault_of(
    store: ObjectStore, path: str, content: bytes, notary: Notary, present: Collection[str]
) -> Fault | None:
    """The fault of the record at `path`; None when it has none. `present` are digests of blobs known to be whole."""
    record = unsealed(content)
    if record is None:
        return "corrupt"
    if not path.startswith(RECORDS):
        return None  # its readers check whether it is trusted, and whether the blobs that it names exist
    if not _is_trusted(path, record, notary):
        return "untrusted"
    needed = needed_blobs(path, content, record)
    if needed is None:
        return "corrupt"
    for digest in needed:
        # The blob may have been written after the blobs were listed.
        if digest not in present and not await _is_there(store, digest):
            return "incomplete"
    return None


def _is_trusted(path: str, record: Mapping[str, Any], notary: Notary) -> bool:
    if path.startswith(PROGRAMS):
        return notary.believes(record.get("signed", ""), path.rpartition("/")[2]) is not None
    if not path.startswith(REQUESTS):
        return True
    said = stated(record)
    is_sealed = notary.opened("answer", path.rpartition("/")[2], record) is not None
    return is_sealed and (said is None or all(map(notary.is_valid, said.keys)))


async def _is_there(store: ObjectStore, digest: str) -> bool:
    content = await read(store, f"{BLOBS}{digest[:2]}/{digest}")
    return content is not None and sha256(content).hexdigest() == digest


async def require_signer(store: ObjectStore, keys: KeySet, directory: Path) -> None:
    """Raise RequestError when there are signed records, and none names one of `keys`, ended ones included.

    `directory` is where the keys were read.
    """
    kids = {key.kid for key in keys.keys}
    strangers: set[str] = set()
    for prefix in (PROGRAMS, REQUESTS):
        async for item in items(store, prefix):
            kid = _signer(item.path, unsealed(await read(store, item.path) or b"") or {})
            if kid in kids:
                return
            if kid is not None:
                strangers.add(kid)
    if strangers:
        raise RequestError(
            f"The store is signed with {len(strangers)} other keys than the {len(kids)} in {directory} (KILN_KEYS, or "
            "KILN_HOME), so every entry would be deleted. Name the directory of the services that use the store; if "
            "their keys are lost, --lost-keys deletes the entries that they signed."
        )


def _signer(path: str, record: Mapping[str, Any]) -> str | None:
    """The key id that an untrusted record names; None when it names none."""
    said: Any = signed_record(record) if path.startswith(PROGRAMS) else record.get(SEAL)
    kid: Any = said.get("key") if isinstance(said, Mapping) else None
    return kid if isinstance(kid, str) else None
