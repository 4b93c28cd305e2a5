"""Verification of signed records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ..errors import UntrustedArtifactError
from .isolation import LEVELS, is_at_least
from .keys import PublicKey
from .record import ActionRecord, SignedRecord, signed_bytes

if TYPE_CHECKING:
    from ..spec import CompiledProgram

CLOCK_SKEW_S: Final = 300
"""Tolerated difference between the clocks of two machines, in seconds."""


def verify(
    signed: SignedRecord | None,
    keys: Mapping[str, PublicKey],
    *,
    action: str,
    now: float,
    minimum_isolation: str = LEVELS[0],
) -> ActionRecord:
    """Verify that the record is for `action`, signed by one of `keys` (by `kid`) that is valid at `now`; return it.

    UntrustedArtifactError otherwise; `details.reason` is `unsigned`, `unknown_key`, `expired_key`, `bad_signature`,
    `swapped_action` or `isolation`.
    """
    if signed is None:
        raise refused("unsigned", f"The program {action} is not signed.", action)
    record = signed.record
    key = keys.get(record.key)
    if key is None:
        raise refused(
            "unknown_key", f"The program {action} is signed by the key {record.key}, not a trusted one.", action
        )
    if not key.has_signed(signed_bytes(record), signed.signature):
        raise refused("bad_signature", f"The signature of the program {action} is not that of its record.", action)
    earliest = key.nbf - CLOCK_SKEW_S
    if not (earliest <= now < key.exp and earliest <= record.issued_at < key.exp):
        raise refused("expired_key", f"The key {record.key} of the program {action} is not valid now.", action)
    if record.action != action:
        raise refused("swapped_action", f"The record is that of {record.action}, not of the program {action}.", action)
    if not is_at_least(record.isolation, minimum_isolation):
        raise refused(
            "isolation",
            f"The program {action} was compiled with the isolation {record.isolation!r}; {minimum_isolation!r} is "
            "the least that is accepted.",
            action,
        )
    return record


def require_agreement(program: CompiledProgram, record: ActionRecord) -> None:
    """UntrustedArtifactError when `program` has another action digest than `record`, or artifacts that it lacks."""
    if program.digest != record.action or not program.artifacts <= set(record.artifacts):
        message = f"The program {record.action} does not agree with its record."
        raise refused("swapped_artifact", message, record.action)


def refused(reason: str, message: str, action: str) -> UntrustedArtifactError:
    """The error for an untrusted program."""
    return UntrustedArtifactError(message, details={"reason": reason, "action": action})
