"""The result of one graph for one target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from ...errors import TensorkilnError
from ...sdk import Outcome
from ...spec import CacheInfo, CompiledProgram
from ..printable import as_unicode
from .files import GraphFile
from .lock import Locked

STATUSES: Final = ("ok", "failed", "not cached", "not run")


@dataclass(frozen=True, slots=True)
class Result:
    """`outcome` is None when the run ended before it. `made` is the new lock entry, None unless it succeeded.

    `locked` is the old lock entry. `error` is the error of the compile or of a later step. `miss` is the service's
    reason that the program is not stored, in a run that compiles nothing.
    """

    file: GraphFile
    target: str
    outcome: Outcome | None = None
    made: Locked | None = None
    locked: Locked | None = None
    error: TensorkilnError | None = None
    miss: CacheInfo | None = None

    @property
    def status(self) -> str:
        """One of STATUSES."""
        if self.outcome is None:
            return "not run"
        return "failed" if self.error is not None else "not cached" if self.miss is not None else "ok"

    @property
    def cache(self) -> CacheInfo | None:
        """The result of the look-up in the service's store."""
        if self.miss is not None:
            return self.miss
        return self.outcome.compiled.cache if self.outcome is not None and self.outcome.compiled is not None else None

    @property
    def growth(self) -> int | None:
        """The growth of the code since it was locked, in bytes."""
        return self.made.bytes - self.locked.bytes if self.made is not None and self.locked is not None else None

    @property
    def is_unfaithful(self) -> bool:
        """Whether the same action now has another program than when it was locked."""
        if self.made is None or self.locked is None or self.made.digest != self.locked.digest:
            return False
        return self.made.program != self.locked.program

    def warnings(self) -> tuple[str, ...]:
        """Warnings about a successful compile."""
        found: list[str] = []
        if self.growth is not None and self.growth > 0:
            found.append(f"the code has grown by {self.growth} bytes since it was locked")
        if self.outcome is not None and self.outcome.attempt > 1:
            found.append(f"the service needed {self.outcome.attempt} attempts")
        if self.error is None and self.outcome is not None and self.outcome.compiled is not None:
            kernels = [each.resources for each in self.outcome.compiled.kernels if each.resources is not None]
            spills = sum(each.spill_bytes or 0 for each in kernels)
            if spills:
                found.append(f"the kernels spill {spills} bytes of registers")
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """The result as an entry of the report."""
        outcome, made, cache = self.outcome, self.made, self.cache
        return {
            "graph": self.file.name,
            "file": as_unicode(self.file.path.as_posix()),
            "target": self.target,
            "status": self.status,
            "digest": made.digest if made else None,
            "cache": cache.model_dump(mode="json") if cache else None,
            "seconds": round(outcome.seconds, 6) if outcome else None,
            "queue_ms": outcome.queue_ms if outcome else None,
            "run_ms": outcome.run_ms if outcome else None,
            "attempt": outcome.attempt if outcome else None,
            "bytes": made.bytes if made else None,
            "growth": self.growth,
            "warnings": list(self.warnings()),
            "error": self.error.to_problem() if self.error else None,
        }


def counts(results: Sequence[Result]) -> dict[str, int]:
    """The number of results of each status."""
    return {status: sum(each.status == status for each in results) for status in STATUSES}


def locked(program: CompiledProgram, sizes: int) -> Locked:
    """The lock entry of a program; `sizes` is the total of its artifacts in bytes.

    The entry excludes fields that may differ between two compiles of one action without changing the program: times,
    dumps, cache status and isolation.
    """
    provenance = program.provenance.model_copy(update={"isolation": ""})
    same = program.with_stages({}, {}).model_copy(update={"provenance": provenance, "cache": CacheInfo(status="miss")})
    content = sha256(same.model_dump_json().encode()).hexdigest()
    return Locked(digest=program.digest, program=content, bytes=sizes, build_id=program.provenance.build_id)
