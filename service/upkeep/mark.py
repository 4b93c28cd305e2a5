"""Select what to remove from a store: everything of one build, or of one tenant."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Mark:
    """Selects the records to remove; this base class selects none.

    `owners` are the names of folders whose rights to read are removed too.
    """

    owners: Collection[str] = ()

    def has_program(self, action: str, record: Mapping[str, Any]) -> bool:
        """Whether to remove the program of the action with this digest, by its signed record, trusted or not."""
        return False

    def has_answer(self, answer: bytes) -> bool:
        """Whether to remove the answer of a request or of a job."""
        return False

    def has_job(self, caller: Any) -> bool:
        """Whether to remove a job that has ended, by the record of its caller."""
        return False

    def has_crash(self, name: str, reproducer: bytes) -> bool:
        """Whether to remove a crash, by the name of its record and its reproducer."""
        return False

    def has_neighbour(self, components: Mapping[str, Any]) -> bool:
        """Whether to remove an entry of the nearest-program index, by components of `service.store.nearest.shown`."""
        return False


@dataclass(frozen=True, kw_only=True)
class OfBuild(Mark):
    """Selects what a build of the compiler made. It has no rights, and its crashes expire in minutes."""

    build_id: str

    def has_program(self, action: str, record: Mapping[str, Any]) -> bool:
        return record.get("build_id") == self.build_id

    def has_answer(self, answer: bytes) -> bool:
        """As in `Mark`: every program of an answer states its build."""
        return self.build_id.encode() in answer

    def has_neighbour(self, components: Mapping[str, Any]) -> bool:
        return components.get("build_id") == self.build_id
