"""A request that is sent again because nobody knows what became of it, and is the same job."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Final

from service.identity.caller import caller
from service.store.blobs import Blobs
from service.store.records import Records
from service.trust.notary import Notary
from service.wire.body import Body

from .job import Job
from .job_outcome import is_lost

HEADER: Final = "Idempotency-Key"
PATTERN: Final = r"^[A-Za-z0-9_-]{1,64}$"
_ID_CHARACTERS: Final = 32


def job_id(body: Body, key: str, again: int = 0) -> str:
    """The id of the job that the current caller has for this body and `key`, sent `again` after so many in vain.

    The name of the header is that of draft-ietf-httpapi-idempotency-key-header. Another body is another job.
    """
    told = json.dumps([caller().to_record(), body.digest, key, again], sort_keys=True)
    return sha256(told.encode()).hexdigest()[:_ID_CHARACTERS]


async def is_to_be_sent_again(job: Job, blobs: Blobs, records: Records, notary: Notary) -> bool:
    """Whether a job has failed by what may be otherwise the next time, or what it came to is there no more."""
    if not job.is_over:
        return False
    error = job.record.error
    return bool(error.get("retryable")) if error is not None else await is_lost(job.record, blobs, records, notary)
