"""Keys and records that are not what they should be."""

from __future__ import annotations

import time
from typing import Any

from service.trust.keyring import KeyFile
from tensorkiln.trust import ActionRecord, SignedRecord, signed_bytes

YEAR_S = 365 * 86_400


def fresh_key(begin: float = 0.0, end: float = YEAR_S) -> KeyFile:
    """A key that is valid from `begin` to `end`, in seconds from now."""
    now = int(time.time())
    return KeyFile.fresh(now + int(begin), now + int(end))


def record(key: KeyFile, **changes: Any) -> ActionRecord:
    """A record as a service would make it, but for `changes`."""
    fields = {
        "action": "a" * 64,
        "request": {
            "abi": 1,
            "graph": "b" * 64,
            "options": {"fast_math": False},
            "schema": 1,
            "target": {"kind": "cpu", "features": ["avx"]},
        },
        "program": "c" * 64,
        "artifacts": ("d" * 64, "e" * 64),
        "stages": {},
        "build_id": "f" * 64,
        "isolation": "process",
        "worker": "w",
        "key": key.kid,
        "issued_at": int(time.time()),
    }
    return ActionRecord.model_validate({**fields, **changes})


def signed(key: KeyFile, of: ActionRecord) -> SignedRecord:
    """`of` with the signature of `key`, whatever key it names."""
    return SignedRecord(record=of, signature=key.sign(signed_bytes(of)))


def altered(of: SignedRecord, **changes: Any) -> SignedRecord:
    """Another record with the signature of this one."""
    return of.model_copy(update={"record": of.record.model_copy(update=changes)})
