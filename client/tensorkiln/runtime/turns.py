"""The turns of loops on the host: in machine code, or in Python where a step calls back.

LLVM compiles `turns.ll` once per process. Its tables have the addresses of the two places that turns alternate between,
which are written when a loop begins on other arrays than before.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, Protocol

from ..errors import CallTurnsError
from .engine import engine_of_module
from .loops import Copy, LoopStep, Turns, run_turns, turns_of

BUDGET: Final = 256
"""Turns of one call of the machine code; signals of Python are handled between such calls."""
KERNEL, TASKS, LOOP, COPY = range(4)
"""Kinds of steps in the machine code."""


class Step(ctypes.Structure):
    """A step of a program; `turns.ll` says what the fields are for each kind."""

    _fields_ = (
        ("kind", ctypes.c_int64),
        ("function", ctypes.c_void_p),
        ("pointers", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("count", ctypes.c_int64),
    )


class _Steps(ctypes.Structure):
    _fields_ = (("first", ctypes.c_void_p), ("count", ctypes.c_int64))


class _Loop(ctypes.Structure):
    _fields_ = (
        ("turn", ctypes.c_int64),
        ("decision", ctypes.c_void_p),
        ("most", ctypes.c_int64),
        ("begin", _Steps),
        ("conditions", _Steps * 2),
        ("bodies", _Steps * 2),
        ("ends", _Steps * 2),
    )


class Program(Protocol):
    """An inner program bound to memory."""

    transient_bytes: int

    def aim(self, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> None: ...
    def run(self, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> None: ...
    def native(self) -> Sequence[Step] | None:
        """The steps on the arrays that the program is aimed at, with the copies of its results; None if a step runs
        Python code.
        """
        ...


class HostLoop:
    """A loop bound to host memory; its own memory starts at the address `room`.

    `conditions` and `bodies` are the programs of the two places of turns; `prepare` runs once before the turns.
    """

    def __init__(
        self,
        step: LoopStep[Any],
        room: int,
        conditions: Sequence[Program],
        bodies: Sequence[Program],
        prepare: Program | None = None,
    ) -> None:
        self._step, self._room = step, room
        self._conditions, self._bodies, self._prepare = tuple(conditions), tuple(bodies), prepare
        self._decision = ctypes.c_uint8.from_address(room + step.room.decision)
        self._turns: Turns | None = None
        self._at: tuple[Sequence[int], Sequence[int]] | None = None
        self._loop: _Loop | None = None
        self._kept: list[object] = []
        self.transient_bytes = 0

    def aim(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Set the addresses of the values before and after the loop."""
        if self._at == (inputs, outputs):
            return
        turns = turns_of(self._step, inputs, outputs, self._room)
        for place, condition, body in zip(turns.places, self._conditions, self._bodies, strict=True):
            condition.aim(place.values, (ctypes.addressof(self._decision),))
            body.aim((*place.values, *turns.kept), place.results)
        if self._prepare is not None:
            self._prepare.aim(self._needed(turns), turns.kept)
        self._turns, self._at = turns, (inputs, outputs)
        self._loop = self._written(turns)

    def _needed(self, turns: Turns) -> tuple[int, ...]:
        """The addresses of the inputs of `prepare`, which are the same at both places."""
        return tuple(turns.places[0].values[place] for place in self._step.needed)

    def native(self) -> Step | None:
        """The loop as a step of machine code; None if one of its steps runs Python code."""
        return None if self._loop is None else Step(kind=LOOP, function=ctypes.addressof(self._loop))

    def run(self) -> None:
        """Run the loop on the arrays that it is aimed at. CallTurnsError beyond the most turns."""
        if self._loop is None:
            self._run_in_python()
            return
        run, is_new = _machine_code(), 1
        while status := run(ctypes.addressof(self._loop), BUDGET, is_new):
            if status > 0:
                raise CallTurnsError.beyond(status)
            is_new = 0

    def _run_in_python(self) -> None:
        assert self._turns is not None, "a loop is aimed before it runs"
        places, kept = self._turns.places, self._turns.kept

        def goes_on(number: int) -> bool:
            program = self._conditions[number]
            program.run(places[number].values, (ctypes.addressof(self._decision),))
            self.transient_bytes = max(self.transient_bytes, program.transient_bytes)
            return self._decision.value != 0

        def turn(number: int) -> None:
            program = self._bodies[number]
            program.run((*places[number].values, *kept), places[number].results)
            self.transient_bytes = max(self.transient_bytes, program.transient_bytes)

        self.transient_bytes = 0
        if self._prepare is not None:
            self._prepare.run(self._needed(self._turns), kept)
        run_turns(self._step, self._turns, goes_on, turn, ctypes.memmove)

    def _written(self, turns: Turns) -> _Loop | None:
        programs = [program.native() for program in (*self._conditions, *self._bodies)]
        prepared = () if self._prepare is None else self._prepare.native()
        if prepared is None or any(steps is None for steps in programs):
            return None
        self._kept = []
        tables = [self._table(steps or ()) for steps in programs]
        begin = self._table([*map(copy_step, turns.begin), *prepared])
        ends = (self._table([*map(copy_step, copies)]) for copies in turns.end)
        return _Loop(
            decision=ctypes.addressof(self._decision),
            most=self._step.most,
            begin=begin,
            conditions=(_Steps * 2)(*tables[:2]),
            bodies=(_Steps * 2)(*tables[2:]),
            ends=(_Steps * 2)(*ends),
        )

    def _table(self, steps: Sequence[Step]) -> _Steps:
        made = (Step * len(steps))(*steps)
        self._kept.append(made)
        return _Steps(ctypes.addressof(made), len(steps))


def copy_step(copy: Copy) -> Step:
    """A copy as a step of machine code."""
    target, source, size = copy
    return Step(kind=COPY, function=target, pointers=source, count=size)


@cache
def _machine_code() -> Callable[[int, int, int], int]:
    """The compiled function `turns`."""
    engine = engine_of_module("turns.ll")
    _FOR_GOOD.append(engine)
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    return run(engine.get_function_address("turns"))


_FOR_GOOD: Final[list[object]] = []
"""Keeps the engine, which keeps its code mapped."""
