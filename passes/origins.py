"""Trace code to graph nodes in stages below the kiln dialect; recorded only when stage texts are requested.

An origin is a number for operations of a kernel, or for values that it computes with loops of their own. It is the line
number of a location, which MLIR's passes and LLVM preserve. Without recording there are no such locations.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from itertools import count
from typing import Final, NamedTuple

from dialect.mlir import ir

from .loops.body import KernelBody, Stage
from .loops.scalar_dag import Interner, Node

FILE: Final = "kiln"
"""The file name of locations whose line is an origin."""
_NUMBER: Final = re.compile(rf'"{FILE}":(\d+):')


_SERIALS: Final = count(1)


class Origin(NamedTuple):
    """Operations of a kernel by position, or, if `is_loops`, the positions of roots that its loops compute."""

    kernel: str
    is_loops: bool
    members: tuple[int, ...]


class Origins:
    """The origins of one compile, numbered from 1."""

    def __init__(self) -> None:
        self.serial = next(_SERIALS)
        """Differs from that of every other record in this process."""
        self._numbers: dict[Origin, int] = {}
        self._locations: dict[tuple[int, ...], ir.Location] = {}
        self._pointers: dict[int, str] = {}

    @property
    def all(self) -> list[Origin]:
        """The origins, in order: number n is at index n - 1."""
        return list(self._numbers)

    def number(self, origin: Origin, pointer: str) -> int:
        """The number of an origin, with its first node at `pointer`."""
        number = self._numbers.setdefault(origin, len(self._numbers) + 1)
        self._pointers.setdefault(number, pointer)
        return number

    def at(self, numbers: tuple[int, ...]) -> AbstractContextManager[object]:
        """The location for code emitted inside; several origins are merged into one with all their operations."""
        location = self._locations.get(numbers)
        if location is None:
            number = self._joined(numbers)
            name = self._pointers[number] or FILE
            location = ir.Location.name(name, childLoc=ir.Location.file(FILE, number, 1))
            self._locations[numbers] = location
        return location

    def _joined(self, numbers: tuple[int, ...]) -> int:
        first = self.all[numbers[0] - 1]
        if len(numbers) == 1:
            return numbers[0]
        members = {each for number in numbers for each in self.all[number - 1].members}
        return self.number(first._replace(members=tuple(sorted(members))), self._pointers[numbers[0]])

    def settle(self, body: KernelBody) -> None:
        """Number the origins of a traced body: replaces the positions that mark its nodes by origins."""
        function, nodes = body.function, body.nodes
        pointers = {value.position: value.pointer for value in function.values}
        nodes.marks = {
            node: (self.number(Origin(function.name, False, tuple(sorted(found))), pointers[found[0]]),)
            for node, found in nodes.marks.items()
        }
        places = {root: at for at, root in enumerate(value for value in function.values if value.is_root)}
        for stage in body.stages:
            members = tuple(sorted(places[entry.root] for entry in stage.stores))
            for entry in stage.stores:
                nodes.loops[entry.operand] = self.number(Origin(function.name, True, members), entry.root.pointer)


_CURRENT: ContextVar[Origins | None] = ContextVar("origins", default=None)


@contextmanager
def recorded() -> Generator[Origins]:
    """Record the origins of code compiled inside."""
    origins = Origins()
    token = _CURRENT.set(origins)
    try:
        yield origins
    finally:
        _CURRENT.reset(token)


def current() -> Origins | None:
    """The origins being recorded, or None."""
    return _CURRENT.get()


def numbers_in(text: str) -> tuple[int, ...]:
    """The origins in the text of a location."""
    return tuple(dict.fromkeys(map(int, _NUMBER.findall(text))))


def at_node(nodes: Interner, node: Node) -> AbstractContextManager[object]:
    """The location of a node's code; if unknown, that of the surrounding code."""
    return _at(nodes.marks[id(node)]) if id(node) in nodes.marks else _ANYWHERE


def at_stage(nodes: Interner, stage: Stage) -> AbstractContextManager[object]:
    """The location of a stage's own code, besides that of its nodes."""
    number = nodes.loops.get(stage.stores[0].operand) if nodes.loops and stage.stores else None
    return _ANYWHERE if number is None else _at((number,))


def shared() -> AbstractContextManager[object]:
    """The unknown location, for code that several kernels share."""
    return _ANYWHERE if current() is None else ir.Location.unknown()


def _at(numbers: tuple[int, ...]) -> AbstractContextManager[object]:
    origins = current()
    return _ANYWHERE if origins is None else origins.at(numbers)


_ANYWHERE: Final = nullcontext()
