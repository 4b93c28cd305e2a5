"""What is to be removed from a store: all that has the mark of one build, or of one tenant."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Mark:
    """Says of each record whether it is to go, which is none here. With it go the rights to read of `owners`, by the
    names of folders.
    """

    owners: Collection[str] = ()

    def has_program(self, action: str, record: Mapping[str, Any]) -> bool:
        """The program of the action with this digest, by what its maker signs, believed or not."""
        return False

    def has_answer(self, answer: bytes) -> bool:
        """The answer of a request or of a job."""
        return False

    def has_job(self, caller: Any) -> bool:
        """A job that has ended, by the record of whose it was."""
        return False

    def has_crash(self, name: str, reproducer: bytes) -> bool:
        """A crash, by the name of its record and what reproduces it."""
        return False

    def has_neighbour(self, components: Mapping[str, Any]) -> bool:
        """An entry of the index of nearest programs, by its components as `service.store.nearest.shown` has them."""
        return False


@dataclass(frozen=True, kw_only=True)
class OfBuild(Mark):
    """What a build of the compiler made. It has no rights, and how it crashed is forgotten in minutes."""

    build_id: str

    def has_program(self, action: str, record: Mapping[str, Any]) -> bool:
        return record.get("build_id") == self.build_id

    def has_answer(self, answer: bytes) -> bool:
        """As `Mark` has it: every program of an answer states its build."""
        return self.build_id.encode() in answer

    def has_neighbour(self, components: Mapping[str, Any]) -> bool:
        return components.get("build_id") == self.build_id
