"""Programs inside of a program, as its loops run them: what does not fit is refused, whoever wrote it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from tensorkiln.build import Builder, while_loop
from tensorkiln.errors import DeviceError
from tensorkiln.program import Program
from tensorkiln.spec import CompiledProgram
from tensorkiln.spec.names import Names
from tests.compiled import compiled

Wire = dict[str, Any]


@cache
def made() -> Any:
    """`x` doubled as long as its sum is below a limit; the symbol is not called as canonical ones are."""
    b = Builder("doubled")
    x, limit = b.input("float32", (b.symbol("rows", 1, 8),)), b.input("float32")
    b.output(*while_loop(lambda x, limit: x.sum() < limit, lambda x, _: x + x, [x], [limit]))
    return compiled(b.graph())


def record() -> Wire:
    return made().program.model_dump(mode="json")


def loop_of(program: Wire) -> Wire:
    return next(item["operation"] for item in program["schedule"]["items"] if item["operation"]["op"] == "loop")


def test_a_program_with_loops_says_so_and_is_read_back() -> None:
    program = made().program
    assert program.abi == 3
    assert CompiledProgram.model_validate_json(program.model_dump_json()) == program
    assert [symbol.name for inner in program.inner for symbol in inner.symbols] == ["rows"] * 2
    assert program.artifacts <= frozenset(made().artifacts)
    assert all(inner.artifacts < program.artifacts for inner in program.inner)


def test_a_program_without_loops_is_written_as_before() -> None:
    inner = made().program.inner[0]
    assert inner.abi == 1
    assert "inner" not in inner.model_dump()


def test_names_reach_the_symbols_of_inner_programs_and_nothing_else() -> None:
    program = made().program
    canonical = program.renamed({"rows": "s0"}, {0: 5, 1: 6, 2: 7}, ())
    names = Names.between(canonical, program)
    assert names.symbols == {"s0": "rows"}
    assert names.of(canonical) == program
    assert [binding.var for binding in canonical.inner[0].inputs] == [0, 1]


def change_loop(**fields: Any) -> Callable[[Wire], object]:
    return lambda program: loop_of(program).update(fields)


def nested(program: Wire) -> None:
    for _ in range(5):
        inner = copy.deepcopy(program)
        inner.update(name="", digest="", stages=[], constraints=[])
        program["inner"] = [inner, *program["inner"]]


HOSTILE: dict[str, Callable[[Wire], object]] = {
    "no program": lambda program: program.update(inner=[]),
    "programs without a loop": lambda program: program.update(schedule={}),
    "an ABI of before": lambda program: program.update(abi=1),
    "an ABI without updates in place": lambda program: program.update(abi=2),
    "a value that is replaced elsewhere": lambda program: program["inner"][1].update(in_place=[1]),
    "a value that is replaced twice": lambda program: program["inner"][1].update(in_place=[0, 0]),
    "a condition that replaces": lambda program: program["inner"][0].update(in_place=[0], abi=3),
    "a program that is not there": change_loop(body=2),
    "a negative program": change_loop(condition=-1),
    "the condition as the body": change_loop(body=0),
    "the body as the condition": change_loop(condition=1),
    "no turn": change_loop(most=0),
    "turns without end": change_loop(most=1 << 40),
    "no results": change_loop(output_vars=[]),
    "more results than values": change_loop(output_vars=[2, 2, 2]),
    "a buffer that is not there": change_loop(input_vars=[0, 99]),
    "other buffers": change_loop(input_vars=[0, 0, 1]),
    "an input as a result": change_loop(output_vars=[0]),
    "scratch": lambda program: program["buffers"][loop_of(program)["output_vars"][0]].update(role="scratch"),
    "another target": lambda program: program["inner"][0].update(target={"kind": "cuda", "arch": "sm_80"}),
    "a name inside": lambda program: program["inner"][0].update(name="inside"),
    "a digest inside": lambda program: program["inner"][0].update(digest="0" * 64),
    "a parameter inside": lambda program: program["inner"][0]["inputs"][0].update(is_parameter=True),
    "a symbol of its own": lambda program: program.update(symbols=[]),
    "too deep": nested,
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_loop_that_does_not_fit_is_refused(what: str) -> None:
    program = record()
    HOSTILE[what](program)
    with pytest.raises(ValueError, match=r"loop|program|buffer|symbol|most|output_vars|condition|in place"):
        CompiledProgram.model_validate(program)


def in_one_place(program: Wire) -> None:
    """What the loop gives lies where something that it takes lies: in a buffer behind, which aliases it."""
    loop = loop_of(program)
    first = program["buffers"][loop["output_vars"][0]]
    program["buffers"].append({**first, "id": len(program["buffers"]), "alias_group": 7, "role": "temp", "offset": 4})
    first["alias_group"] = 7
    loop["input_vars"][0] = len(program["buffers"]) - 1


def of_other_bytes(program: Wire) -> None:
    """The body takes and gives rows of another length."""
    for inner in program["inner"]:
        for part in (*inner["buffers"], *inner["inputs"], *inner["outputs"]):
            if part["shape"]:
                part["shape"] = [4]
        for buffer in inner["buffers"]:
            buffer["size_bytes"] = 16 if buffer["shape"] else buffer["size_bytes"]


@pytest.mark.parametrize("change", [in_one_place, of_other_bytes])
def test_inner_programs_are_checked_against_sizes_at_the_call(change: Callable[[Wire], object]) -> None:
    program = record()
    change(program)
    loaded = Program(CompiledProgram.model_validate(program), made().artifacts.__getitem__)
    with pytest.raises(DeviceError, match="compile the program again"):
        loaded(np.ones(3, np.float32), np.float32(10), rows=3)


def test_a_program_that_replaces_its_inputs_is_not_run_by_itself() -> None:
    body = made().program.inner[1]
    assert body.in_place == (0,)
    with pytest.raises(DeviceError, match="only the body of a loop"):
        Program(body, made().artifacts.__getitem__)
