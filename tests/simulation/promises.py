"""The guarantees of a farm, checked against writes to the store and the results of jobs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Final

from service.engine.farm.engine import MAX_ATTEMPTS
from service.store.attempts import MAX_CRASHES
from service.store.records import unsealed
from service.trust.notary import signatures_of
from tensorkiln.trust.isolation import is_at_least
from tensorkiln.trust.record import SignedRecord

from .compiler import Kind
from .members import REQUIRED, action

_ENDED: Final = "jobs/ended/"
_PROGRAMS: Final = "programs/"
_OF_KIND: Final[Mapping[Kind, frozenset[str]]] = {
    "good": frozenset(),
    "refused": frozenset({"compile.diagnostic"}),
    "poison": frozenset({"compile.crashed"}),
    "deadly": frozenset({"infra.lost_worker"}),
}
"""The error codes that a job may have, by the kind of its graph."""


class Broken(AssertionError):
    """A broken guarantee."""


class Promises:
    """Monitors a history. `accepted` has the kind of the graph and the digest of the action, by job."""

    def __init__(self) -> None:
        self.accepted: dict[str, tuple[Kind, str]] = {}
        self.broken: list[str] = []
        self.may_fail: set[str] = set()
        self.may_crash_more = 0
        self._truth: dict[str, str] = {}
        self._ends: dict[str, bytes] = {}
        self._crashes: Counter[str] = Counter()

    def written(self, path: str, content: bytes) -> None:
        """Check an object that is about to be stored."""
        name = path.rpartition("/")[2]
        if path.startswith(_ENDED):
            if self._ends.setdefault(name, content) != content:
                self._breaks(f"the job {name} ended twice")
        elif path.startswith(_PROGRAMS):
            self._signed(name, content)
        elif "/open/" in path and path.startswith("farm/"):
            attempt = (unsealed(content) or {})["attempt"]
            if attempt > MAX_ATTEMPTS:
                self._breaks(f"the order {name} was offered for attempt {attempt}")

    def compiled(self, digest: str, kind: Kind) -> None:
        """Count the end of a compile, to check the limit of crashes per graph."""
        if kind == "poison":
            self._crashes[digest] += 1
            if self._crashes[digest] > MAX_CRASHES + self.may_crash_more:
                self._breaks(f"{digest} has crashed {self._crashes[digest]} compiles")

    @property
    def are_decided(self) -> bool:
        """Whether every accepted job has ended, or a promise was broken before that."""
        return bool(self.broken) or all(job in self._ends for job in self.accepted)

    def check(self, objects: Mapping[str, tuple[bytes, float]]) -> None:
        """Check the result of every accepted job. Broken lists all broken guarantees."""
        for job, (kind, digest) in self.accepted.items():
            if job not in self._ends:
                if not self.broken:
                    self._breaks(f"the job {job} is lost")
                continue
            record = unsealed(self._ends[job]) or {}
            if record["state"] == "done":
                self._done(job, kind, digest, objects[_blob(record["answer"])][0])
            else:
                code = (record["error"] or {}).get("code")
                if code not in _OF_KIND[kind] | self.may_fail:
                    self._breaks(f"the job {job} on a {kind} graph is {record['state']}: {record['error']}")
        if self.broken:
            raise Broken("; ".join(dict.fromkeys(self.broken)))

    def _signed(self, digest: str, content: bytes) -> None:
        signed = SignedRecord.model_validate_json((unsealed(content) or {})["signed"]).record
        # Programs below the required isolation may be replaced.
        if is_at_least(signed.isolation, REQUIRED) and self._truth.setdefault(digest, signed.program) != signed.program:
            self._breaks(f"there are two programs for {digest}")

    def _done(self, job: str, kind: Kind, digest: str, answer: bytes) -> None:
        if kind != "good":
            self._breaks(f"the job {job} on a {kind} graph has a program")
            return
        (signed,) = signatures_of(answer)
        (program,) = json.loads(answer)["programs"]
        assert signed is not None
        record = signed.record
        if not is_at_least(record.isolation, REQUIRED):
            self._breaks(f"the job {job} has a program that was made at the level {record.isolation}")
        elif record.program != self._truth[digest]:
            self._breaks(f"the job {job} has another program than others for {digest}")
        if (program["digest"], record.action) != (digest, digest):
            self._breaks(f"the job {job} has the program of another action")
        if program["build"] != record.build_id or action(record.request.graph, program["build"]).digest != digest:
            self._breaks(f"the job {job} has a program of the build {program['build']}")

    def _breaks(self, what: str) -> None:
        self.broken.append(what)


def _blob(digest: str) -> str:
    return f"blobs/{digest[:2]}/{digest}"
