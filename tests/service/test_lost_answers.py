"""A request that is sent again with its key is compiled again when it, or what its job came to, is there no more."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from service.engine.job import Job
from service.engine.order import OnProgress
from service.engine.submissions import Submissions
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from service.wire.body import Body
from tests.service.bodies import compile_body, encoded, graph
from tests.service.house import BODY, House, ended, failed_by
from tests.service.server import Server


def stored(server: Server, folder: str, digest: str) -> Path:
    return server.home / "store" / folder / digest[:2] / digest


@pytest.mark.parametrize("lost", ["answer", "artifact", "program"])
def test_a_lost_result_of_an_idempotent_job_is_compiled_again(server: Server, lost: str) -> None:
    body, headers = encoded(compile_body(graph("log2", rows=61))), {"Prefer": "wait=30", "Idempotency-Key": lost}
    first = server.post("/compile", body, **headers).json()
    assert server.post("/compile", body, **headers).json()["id"] == first["id"]
    (program,) = first["programs"]
    artifact = program["kernels"][0]["artifact"]
    if lost == "answer":
        (record,) = (server.home / "store" / "jobs" / "ended").glob(f"*/{first['id']}")
        answer = json.loads(record.read_bytes().partition(b"\n")[2])["answer"]
        os.unlink(stored(server, "blobs", answer))
    elif lost == "artifact":
        os.unlink(stored(server, "blobs", artifact))
    else:
        os.unlink(stored(server, "programs", program["digest"]))
    again = server.post("/compile", body, **headers)
    assert (again.status_code, again.json()["state"]) == (200, "done")
    assert again.json()["id"] != first["id"]
    assert server.http.get(f"/artifacts/{artifact}").status_code == 200
    assert server.http.get(f"/programs/{program['digest']}").status_code == 200
    # The first may be whole again, too.
    assert server.post("/compile", body, **headers).json()["id"] in (first["id"], again.json()["id"])


@pytest.mark.parametrize("is_there", [False, True])
async def test_a_request_whose_body_is_lost_or_damaged_may_be_sent_again(tmp_path: Path, is_there: bool) -> None:
    async def work(body: Body, on_progress: OnProgress) -> bytes:
        return body.content

    house = House(tmp_path, work)
    notary = Notary(Keyring(tmp_path / "keys"), "here", "process")
    unused: Any = None
    async with house.working() as jobs:
        submissions = Submissions(jobs, unused, unused, unused, house.blobs, house.records, notary)

        async def begin(identifier: str) -> Job:
            return await jobs.accept(BODY, identifier=identifier)

        async def lose(identifier: str) -> Job:
            job = await begin(identifier)
            # Its work has not begun: nothing has been waited for since it was accepted.
            path = tmp_path / "blobs" / job.record.body[:2] / job.record.body
            path.write_bytes(b"[]") if is_there else path.unlink()
            return job

        lost = await submissions.by_key(BODY, "key", lose)
        record = await ended(jobs, lost.record.id)
        assert failed_by(record) == "infra.unavailable"
        assert record.error
        assert record.error["retryable"] is True
        again = await submissions.by_key(BODY, "key", begin)
        assert again.record.id != lost.record.id
        assert (await ended(jobs, again.record.id)).state == "done"
        await submissions.close()
