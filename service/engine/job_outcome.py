"""The outcome of a job, as its record names it, and whether it is still stored."""

from __future__ import annotations

from typing import Any

from service.store.blobs import Blobs
from service.store.job_records import JobRecord
from service.store.programs import path_of
from service.store.records import Records
from service.trust.notary import Notary, signatures_of


async def kept(answer: bytes, blobs: Blobs) -> dict[str, Any]:
    """Store `answer` durably; the fields of the job's record that name it, its programs and its blobs."""
    signed = [each.record for each in signatures_of(answer) if each is not None]
    named = (digest for each in signed for digest in (each.program, *each.artifacts, *each.stages.values()))
    return {
        "answer": await blobs.put(answer, durable=True),
        "programs": tuple(dict.fromkeys(each.action for each in signed)),
        "blobs": tuple(dict.fromkeys(named)),
    }


async def is_lost(record: JobRecord, blobs: Blobs, records: Records, notary: Notary) -> bool:
    """Whether a job is done, and its answer or something the answer names is missing, damaged or not trusted."""
    if record.answer is None:
        return False
    answer = await blobs.get(record.answer)
    if answer is None or not notary.believes_answer(answer):
        return True
    has_blobs = await blobs.holds(record.blobs)
    return not (has_blobs and await records.in_use([path_of(program) for program in record.programs]))
