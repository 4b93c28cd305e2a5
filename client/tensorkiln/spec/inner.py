"""Consistency checks between a program and its inner programs. Each failure is a ValueError that names the parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..buffers import Binding, Buffer
from ..dtypes import DType
from ..limits import MAX_LOOP_DEPTH
from ..nodes import SymVar
from ..schedule import Loop, Schedule
from ..target import Target
from .abi import ABI_IN_PLACE, ABI_OF_LOOPS, ABI_PREPARED


class AnyProgram(Protocol):
    """The fields of a program that the checks read."""

    @property
    def abi(self) -> int: ...
    @property
    def digest(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def target(self) -> Target: ...
    @property
    def symbols(self) -> Sequence[SymVar]: ...
    @property
    def inputs(self) -> Sequence[Binding]: ...
    @property
    def outputs(self) -> Sequence[Binding]: ...
    @property
    def constraints(self) -> Sequence[object]: ...
    @property
    def buffers(self) -> Sequence[Buffer]: ...
    @property
    def schedule(self) -> Schedule: ...
    @property
    def prepare(self) -> Sequence[int]: ...
    @property
    def stages(self) -> Sequence[object]: ...
    @property
    def tuning(self) -> object: ...
    @property
    def inner(self) -> Sequence[AnyProgram]: ...
    @property
    def in_place(self) -> Sequence[int]: ...


def check_inner(program: AnyProgram) -> None:
    """ValueError when a loop refers to a missing inner program, or to one with other inputs or outputs than the loop.

    Inner programs have the target of the outer program and a subset of its symbols. They have no name, digest, stages,
    constraints or tuning. The body of a loop may have `prepare`, and its parameters are inputs that the loop does not
    change; the condition has neither.
    """
    loops = [item.operation for item in program.schedule.items if isinstance(item.operation, Loop)]
    if bool(loops) != bool(program.inner) or (program.inner and program.abi < ABI_OF_LOOPS):
        raise ValueError(f"a program of the ABI {program.abi} has {len(loops)} loops and {len(program.inner)} programs")
    if program.inner and depth_of(program) > MAX_LOOP_DEPTH:
        raise ValueError(f"loops are inside of each other more than {MAX_LOOP_DEPTH} levels deep")
    if program.in_place and program.abi < ABI_IN_PLACE:
        raise ValueError(f"a program of the ABI {program.abi} replaces the inputs {list(program.in_place)} in place")
    for number, inner in enumerate(program.inner):
        _check_own(program, number, inner)
    for loop in loops:
        for number in (loop.condition, loop.body):
            if number >= len(program.inner):
                raise ValueError(f"loop {loop.loop_id} runs program {number} of {len(program.inner)}")
        condition, body = program.inner[loop.condition], program.inner[loop.body]
        changed = body.inputs[: len(loop.output_vars)]
        if condition.prepare or any(binding.is_parameter for binding in (*condition.inputs, *changed)):
            raise ValueError(f"loop {loop.loop_id} has a parameter that it changes, or its condition prepares values")
        if condition.in_place:
            raise ValueError(f"the condition of loop {loop.loop_id} replaces its inputs in place")
        if program.abi < ABI_IN_PLACE and (_reuses(loop, program.buffers) or body.in_place):
            raise ValueError(f"loop {loop.loop_id} of a program of the ABI {program.abi} updates values in place")
        _check_loop(loop, program.buffers, condition, body)


def _reuses(loop: Loop, buffers: Sequence[Buffer]) -> bool:
    """Whether a result of the loop shares storage with one of its inputs."""
    taken, given = ({buffers[number].storage for number in side} for side in (loop.input_vars, loop.output_vars))
    return not taken.isdisjoint(given)


def depth_of(program: AnyProgram) -> int:
    """The depth of nested loops."""
    return 1 + max(map(depth_of, program.inner)) if program.inner else 0


def _check_own(program: AnyProgram, number: int, inner: AnyProgram) -> None:
    known = {symbol.name for symbol in program.symbols}
    if inner.target != program.target or not known.issuperset(symbol.name for symbol in inner.symbols):
        raise ValueError(f"program {number} inside of a program is for another target, or has symbols of its own")
    is_named = inner.digest or inner.name or inner.stages or inner.tuning is not None
    if is_named or inner.constraints:
        raise ValueError(f"program {number} inside of a program has what only the outermost has")
    if program.abi < ABI_PREPARED and (inner.prepare or any(binding.is_parameter for binding in inner.inputs)):
        raise ValueError(f"program {number} inside of a program of the ABI {program.abi} has parameters")


def _check_loop(loop: Loop, buffers: Sequence[Buffer], condition: AnyProgram, body: AnyProgram) -> None:
    for number in (*loop.input_vars, *loop.output_vars):
        if buffers[number].role == "scratch":
            raise ValueError(f"loop {loop.loop_id} names buffer {number}, which is scratch")
    for name, inner in (("condition", condition), ("body", body)):
        _check_alike(loop, f"its {name} takes", inner.inputs, loop.input_vars, buffers)
    _check_alike(loop, "its body gives", body.outputs, loop.output_vars, buffers)
    given = [(binding.dtype, binding.shape) for binding in condition.outputs]
    if given != [(DType.BOOL, ())]:
        raise ValueError(f"the condition of loop {loop.loop_id} gives {given}, not one bool")
    for before, after in zip(loop.input_vars, loop.output_vars, strict=False):
        if buffers[before].dtype is not buffers[after].dtype:
            raise ValueError(f"loop {loop.loop_id} takes buffer {before} and gives {after}, which is of another dtype")


def _check_alike(
    loop: Loop, what: str, bindings: Sequence[Binding], given: Sequence[int], buffers: Sequence[Buffer]
) -> None:
    dtypes = [binding.dtype for binding in bindings]
    if dtypes != [buffers[number].dtype for number in given]:
        raise ValueError(f"loop {loop.loop_id} has the buffers {list(given)}, and {what} {list(map(str, dtypes))}")
