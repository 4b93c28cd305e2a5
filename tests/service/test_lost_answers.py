"""A request that is sent again with its key is compiled again when what its job came to is there no more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from service.store.records import unsealed
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server


def stored(server: Server, folder: str, digest: str) -> Path:
    return server.home / "store" / folder / digest[:2] / digest


def answer_of(path: Path) -> str:
    record = unsealed(path.read_bytes())
    assert record is not None
    return record["answer"]


@pytest.mark.parametrize("lost", ["answer", "artifact", "program"])
def test_what_a_job_with_a_key_came_to_is_made_again_when_it_is_lost(server: Server, lost: str) -> None:
    body, headers = encoded(compile_body(graph("log2", rows=61))), {"Prefer": "wait=30", "Idempotency-Key": lost}
    first = server.post("/compile", body, **headers).json()
    assert server.post("/compile", body, **headers).json()["id"] == first["id"]
    (program,) = first["programs"]
    artifact = program["kernels"][0]["artifact"]
    if lost == "answer":
        (record,) = (server.home / "store" / "jobs" / "ended").glob(f"*/{first['id']}")
        os.unlink(stored(server, "blobs", answer_of(record)))
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
