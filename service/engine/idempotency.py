"""A request that is sent again because nobody knows what became of it, and is the same job."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Final

from service.body import Body
from service.identity.caller import caller

HEADER: Final = "Idempotency-Key"
PATTERN: Final = r"^[A-Za-z0-9_-]{1,64}$"
_ID_CHARACTERS: Final = 32


def job_id(body: Body, hook: str | None, key: str) -> str:
    """The id of the job that the current caller has for this body and `key`.

    The name of the header is that of draft-ietf-httpapi-idempotency-key-header. Another body is another job.
    """
    told = json.dumps([caller().to_record(), body.digest, hook, key], sort_keys=True)
    return sha256(told.encode()).hexdigest()[:_ID_CHARACTERS]
