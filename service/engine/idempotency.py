"""A request that is sent again because nobody knows what became of it, and is the same job."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Final

from service.body import Body
from service.identity.caller import caller

from .job import Job

HEADER: Final = "Idempotency-Key"
PATTERN: Final = r"^[A-Za-z0-9_-]{1,64}$"
_ID_CHARACTERS: Final = 32


def job_id(body: Body, hook: str | None, key: str, again: int = 0) -> str:
    """The id of the job that the current caller has for this body and `key`, sent `again` after so many that failed.

    The name of the header is that of draft-ietf-httpapi-idempotency-key-header. Another body is another job.
    """
    told = json.dumps([caller().to_record(), body.digest, hook, key, again], sort_keys=True)
    return sha256(told.encode()).hexdigest()[:_ID_CHARACTERS]


def is_to_be_sent_again(job: Job) -> bool:
    """Whether a job has failed by what may be otherwise the next time, so that its request is to be sent again."""
    error = job.record.error
    return job.is_over and error is not None and bool(error.get("retryable"))
