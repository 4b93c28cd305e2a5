"""Check that a store was signed with the given keys: with other keys, a scrub would remove everything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from service.store.inventory import PROGRAMS, REQUESTS, items, read, signed_record
from service.store.location import ObjectStore
from service.store.records import unsealed
from service.trust.notary import SEAL
from tensorkiln.errors import RequestError
from tensorkiln.trust.keys import KeySet


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
