"""Faults injected into the code of a farm, which the simulation must detect."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest.mock import patch

from service.engine.farm.engine import Pending
from service.store.job_records import JobRecord, JobRecords
from tensorkiln.compiler_build import Build
from tensorkiln.trust.verify import verify

from .history import BUILDS


@contextmanager
def lost_ack() -> Generator[None]:
    """A job is acknowledged before it is stored; it is stored only when it starts."""
    write = JobRecords.write

    async def late(self: JobRecords, record: JobRecord) -> None:
        if record.state != "queued":
            await write(self, record)

    with patch.object(JobRecords, "write", late):
        yield


@contextmanager
def claim_without_a_lease() -> Generator[None]:
    """Leases of orders never expire."""
    with patch.object(Pending, "lease_is_over", False):
        yield


@contextmanager
def result_of_another_build() -> Generator[None]:
    """A worker of another build accepts orders as if it had the requested build."""
    with ExitStack() as stack:
        for module in ("service.engine.farm.ledger", "service.worker.bench"):
            stack.enter_context(patch(f"{module}.build", lambda: Build(BUILDS[0], {})))
        yield


@contextmanager
def retry_without_a_bound() -> Generator[None]:
    """Orders of lost workers are retried without a limit."""
    with patch("service.engine.farm.engine.MAX_ATTEMPTS", 1 << 30):
        yield


@contextmanager
def level_unchecked() -> Generator[None]:
    """Programs are trusted at any isolation level."""

    def believing(*what: Any, minimum_isolation: str, **how: Any) -> Any:
        return verify(*what, **how)

    with patch("service.trust.notary.verify", believing):
        yield


FAULTS: Final[Mapping[str, Callable[[], Any]]] = {
    each.__name__: each
    for each in (lost_ack, claim_without_a_lease, result_of_another_build, retry_without_a_bound, level_unchecked)
}
