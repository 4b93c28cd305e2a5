"""What is to be removed from a store: all that has the mark of one build, or of one tenant."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


class Mark(Protocol):
    """Says of each record whether it is to go. With it go the rights to read of `owners`, by the names of folders."""

    @property
    def owners(self) -> Collection[str]: ...

    def has_program(self, action: str, record: Mapping[str, Any]) -> bool:
        """The program of the action with this digest, by what its maker signs, believed or not."""
        ...

    def has_answer(self, answer: bytes) -> bool:
        """The answer of a request or of a job."""
        ...

    def has_job(self, caller: Any) -> bool:
        """A job that has ended, by the record of whose it was."""
        ...

    def has_crash(self, name: str, reproducer: bytes) -> bool:
        """A crash, by the name of its record and what reproduces it."""
        ...

    def has_neighbour(self, components: Mapping[str, Any]) -> bool:
        """An entry of the index of nearest programs, by its components as `service.store.nearest.shown` has them."""
        ...


@dataclass(frozen=True, slots=True)
class OfBuild:
    """What a build of the compiler made. It has no rights, and how it crashed is forgotten in minutes."""

    build_id: str
    owners: Collection[str] = field(default=(), init=False)

    def has_program(self, action: str, record: Mapping[str, Any]) -> bool:
        """As `Mark` has it."""
        return record.get("build_id") == self.build_id

    def has_answer(self, answer: bytes) -> bool:
        """As `Mark` has it: every program of an answer states its build."""
        return self.build_id.encode() in answer

    def has_job(self, caller: Any) -> bool:
        """As `Mark` has it."""
        return False

    def has_crash(self, name: str, reproducer: bytes) -> bool:
        """As `Mark` has it."""
        return False

    def has_neighbour(self, components: Mapping[str, Any]) -> bool:
        """As `Mark` has it."""
        return components.get("build_id") == self.build_id
