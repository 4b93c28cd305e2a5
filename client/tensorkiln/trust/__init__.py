"""Trust in compiled programs: signed records of compiles, and the keys that sign them."""

from .isolation import LEVELS, is_at_least
from .keys import Endorsement, KeySet, PublicKey
from .record import ActionRecord, RequestedAction, SignedRecord, signed_bytes
from .verify import verify

__all__ = [
    "LEVELS",
    "ActionRecord",
    "Endorsement",
    "KeySet",
    "PublicKey",
    "RequestedAction",
    "SignedRecord",
    "is_at_least",
    "signed_bytes",
    "verify",
]
