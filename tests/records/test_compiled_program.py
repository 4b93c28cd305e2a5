"""The whole record: what must fit together, how it travels, how it is renamed."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tensorkiln.dtypes import DType
from tensorkiln.expr import floordiv, symbol
from tensorkiln.infer import Constraint
from tensorkiln.schedule import KernelItem, OpRef
from tensorkiln.spec import CacheInfo, CompiledProgram, Provenance, StageRecord
from tests.runtime.kernels import ADD, DOUBLE, INCREMENT
from tests.runtime.sketch import Sketch

N, M = symbol("s0"), symbol("s1")


def sketch() -> Sketch:
    made = Sketch(symbols={"s0": (1, 64), "s1": (1, 32)})
    x, y = made.buffer([N], "input"), made.buffer([M, 2], "input")
    between, out = made.buffer([N], lifetime=(0, 1)), made.buffer([N], "output")
    made.elementwise(DOUBLE, "double_it", [x, between], count="s0")
    made.elementwise(INCREMENT, "increment", [between, out], count="s0")
    made.kernels[0] = made.kernels[0].model_copy(update={"dynamic_shared_bytes": 4 * N})
    made.constraints = [Constraint("eq", N, floordiv(M, 2), "/nodes/1/shape", "s0 must be half of s1, not s01 or s0.x")]
    assert y == 1
    return made


def full() -> CompiledProgram:
    compiled = sketch().compiled()
    item = compiled.schedule.items[0]
    assert isinstance(item.operation, KernelItem)
    operation = item.operation.model_copy(update={"ops": (OpRef(node=0, kind="binop"), OpRef(node=2, kind="cast"))})
    items = (item.model_copy(update={"operation": operation}), *compiled.schedule.items[1:])
    return compiled.model_copy(
        update={
            "schedule": compiled.schedule.model_copy(update={"items": items}),
            "stages": (StageRecord(name="to-linalg", seconds=0.25, dump="f" * 64),),
            "provenance": Provenance(build_id="b1", versions={"llvm": "22"}, flags=("-O3",), isolation="process"),
            "cache": CacheInfo(status="hit", reason="same action digest"),
        }
    )


def test_a_program_survives_serialization() -> None:
    program = full()
    again = CompiledProgram.model_validate_json(program.model_dump_json())
    assert again == program
    assert again.model_dump_json() == program.model_dump_json()


def test_a_program_has_a_json_schema() -> None:
    schema = CompiledProgram.model_json_schema()["$defs"]["CompiledProgram"]
    assert {"kernels", "buffers", "schedule", "constraints"} <= schema["properties"].keys()


def test_the_artifacts_of_a_program_are_its_code_and_its_constants() -> None:
    made = sketch()
    made.buffer([2], "constant", content=b"12345678")
    assert made.compiled().artifacts == frozenset(made.artifacts)


def test_the_assembled_form_of_the_code_is_an_artifact_too() -> None:
    made = sketch()
    binary = "b" * 64
    made.kernels[0] = made.kernels[0].model_copy(update={"binary": binary})
    assert made.compiled().artifacts == {*made.artifacts, binary}


def refused(message: str, **fields: Any) -> None:
    data = sketch().compiled().model_dump(mode="json")
    with pytest.raises(ValidationError, match=message):
        CompiledProgram.model_validate(data | fields)


def changed(part: str, index: int, **fields: Any) -> dict[str, Any]:
    rows = sketch().compiled().model_dump(mode="json")[part]
    rows[index] |= fields
    return {part: rows}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (changed("buffers", 2, id=7), "the buffer at position 2 has the id 7"),
        (changed("buffers", 2, shape=["zz"]), "buffer 2 uses zz, which is not a symbol"),
        (changed("buffers", 2, lifetime=[0, 0]), r"item 1 uses buffer 2 outside its lifetime \(0, 0\)"),
        (changed("buffers", 2, lifetime=[1, 0]), "which ends before it begins"),
        (changed("buffers", 2, alignment=48), "not a power of two"),
        (changed("buffers", 2, offset=4), "buffer 2 has an offset but no alias group"),
        (changed("buffers", 2, role="constant"), "has an artifact exactly when it is a constant"),
        (changed("buffers", 2, role="scratch", alias_group=1), "buffer 2 is scratch"),
        (changed("buffers", 2, role="input"), "the inputs are bound to buffers"),
        (changed("buffers", 3, role="scratch"), "is bound to buffer 3, which is scratch"),
        (changed("inputs", 0, buffer=9), "the binding of var 100 names buffer 9"),
        (changed("inputs", 0, dtype="int32"), "var 100 and its buffer 0 differ in dtype or shape"),
        (changed("inputs", 1, var=100), "an input var is bound twice"),
        (changed("outputs", 0, shape=[3]), "var 103 and its buffer 3 differ in dtype or shape"),
        (changed("kernels", 0, buffers=[0, 9]), "kernel double_it names buffer 9"),
        (changed("kernels", 0, buffers=[], ins=[], outs=[]), "kernel double_it takes 2 buffers but names 0"),
        (changed("kernels", 0, var_names=["zz"]), "kernel double_it takes zz, which is not a symbol"),
        (changed("kernels", 0, global_size=["zz", 1, 1]), "kernel double_it uses zz, which is not a symbol"),
        (changed("kernels", 0, dynamic_shared_bytes="zz"), "kernel double_it uses zz, which is not a symbol"),
        (changed("kernels", 0, buffers=[2, 0]), "item 0 writes buffer 0, whose storage is the input"),
        (changed("symbols", 1, name="s0"), "a symbol is declared twice"),
        ({"kernels": []}, "item 0 launches kernel 0 of 0"),
        ({"constraints": [{"kind": "lt"}]}, "a constraint is an object of"),
        ({"surprise": 1}, "Extra inputs are not permitted"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(fields: dict[str, Any], message: str) -> None:
    refused(message, **fields)


def test_two_inputs_in_one_alias_group_are_refused() -> None:
    made = Sketch()
    made.buffer([2], "input", alias_group=1)
    made.buffer([2], "input", alias_group=1)
    with pytest.raises(ValidationError, match="alias group 1 holds more than one input or constant"):
        made.compiled()


def test_renaming_reaches_symbols_vars_nodes_and_pointers() -> None:
    program = full().renamed({"s0": "rows", "s1": "cols"}, {100: 5, 101: 3, 103: 8}, [40, 41, 42])
    rows, cols = symbol("rows"), symbol("cols")
    assert [symbol.name for symbol in program.symbols] == ["rows", "cols"]
    assert [(binding.var, binding.shape) for binding in program.inputs] == [(5, (rows,)), (3, (cols, 2))]
    assert [binding.var for binding in program.outputs] == [8]
    assert program.buffers[2].shape == (rows,)
    assert program.buffers[2].size_bytes == 4 * rows
    kernel = program.kernels[0]
    assert kernel.var_names == ("rows",)
    assert {variable.name for variable in kernel.vars} == {"rows", "cols"}
    assert kernel.launch_dims({"rows": 33, "cols": 1}).global_size == (3, 1, 1)
    assert kernel.dynamic_shared_bytes == 4 * rows
    operation = program.schedule.items[0].operation
    assert isinstance(operation, KernelItem)
    assert operation.ops == (OpRef(node=40, kind="binop"), OpRef(node=42, kind="cast"))
    assert operation.inputs[0].layout.shape == (rows,)
    assert operation.iter.axes[0].extent == kernel.global_size[0]
    (constraint,) = program.constraints
    assert (constraint.left, constraint.right) == (rows, floordiv(cols, 2))
    assert constraint.pointer == "/nodes/41/shape"
    assert constraint.message == "rows must be half of cols, not s01 or s0.x"
    assert "s0" not in {name for kernel in program.kernels for name in kernel.var_names}


def test_two_symbols_may_swap_their_names() -> None:
    program = full().renamed({"s0": "s1", "s1": "s0"}, {}, [])
    assert [symbol.name for symbol in program.symbols] == ["s1", "s0"]
    assert program.inputs[0].shape == (M,)
    assert program.inputs[1].shape == (N, 2)
    assert program.kernels[0].var_names == ("s1",)
    assert program.renamed({"s0": "s1", "s1": "s0"}, {}, []) == full()


def test_a_renamed_program_is_still_well_formed() -> None:
    program = full().renamed({"s0": "rows", "s1": "cols"}, {100: 5}, [9, 8, 7])
    assert CompiledProgram.model_validate_json(program.model_dump_json()) == program


def test_renaming_to_the_same_names_shares_every_record() -> None:
    program = full()
    assert program.renamed({}, {}, []) is program


def test_a_buffer_bound_to_an_output_may_be_of_any_role_but_scratch() -> None:
    made = Sketch()
    made.bind(made.buffer([2], "input"), made.outputs)
    made.bind(made.buffer([2]), made.outputs)
    made.bind(made.buffer([2], "constant", content=b"12345678"), made.outputs)
    assert len(made.compiled().outputs) == 3


def test_element_types_travel_by_name() -> None:
    made = Sketch(symbols={"n": (1, 2)})
    n = symbol("n")
    made.elementwise(ADD, "add", [made.buffer([n], "input")] * 2 + [made.buffer([n], "output")])
    data = made.compiled().model_dump(mode="json")
    assert data["buffers"][0]["dtype"] == DType.FLOAT32.value
    assert data["buffers"][0]["shape"] == ["n"]


@pytest.mark.parametrize("name", ["../../etc/cron.d/x", "", "a/b", "a\n", "A"])
def test_a_stage_has_a_name_that_a_file_can_have(name: str) -> None:
    with pytest.raises(ValidationError):
        StageRecord(name=name)
