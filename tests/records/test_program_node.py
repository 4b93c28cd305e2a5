"""F1-F8: a spec from a PROGRAM node."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tensorkiln.errors import DiagnosticError
from tensorkiln.expr import symbol
from tensorkiln.launch import Const, DefineVar, LaunchNode
from tensorkiln.program_ast import (
    DeviceRef,
    Index,
    Linear,
    Load,
    Param,
    ProgramBinary,
    Sink,
    Source,
    Special,
    Store,
)
from tensorkiln.spec import ProgramSpec, Variable
from tensorkiln.spec.program_spec import ProgramNode

GROUP = Special(DefineVar("n", 1, 64), "gidx0")
SINK = Sink((Store(Index(Param(1), (GROUP,)), Load(Index(Param(0), (GROUP,)))),))
PROGRAM = ProgramNode(sink=SINK, device=DeviceRef("CUDA:1"), linear=Linear(), source=Source("ptx"))
N = symbol("n")


def refused(message: str, program: LaunchNode) -> None:
    with pytest.raises(DiagnosticError, match=f"^{message}$"):
        ProgramSpec.from_program(program)


def test_a_program_without_metadata_is_what_its_sink_says() -> None:
    spec = ProgramSpec.from_program(PROGRAM)
    assert (spec.name, spec.entry, spec.src, spec.device) == ("kernel", "kernel", "ptx", "CUDA:1")
    assert (spec.var_names, spec.globals, spec.outs, spec.ins) == (("n",), (0, 1), (1,), (0,))
    assert (spec.buf_count, spec.global_size, spec.local_size) == (2, (N, 1, 1), (1, 1, 1))


def test_f1_something_else_than_a_program_is_refused() -> None:
    refused("expected PROGRAM op, got Sink", SINK)


def test_f2_the_sink_stage_must_be_a_sink() -> None:
    refused("PROGRAM sink stage must be SINK op, got Const", replace(PROGRAM, sink=Const(1)))


def test_f3_the_device_must_be_a_device() -> None:
    refused("PROGRAM device must be DEVICE op, got Const", replace(PROGRAM, device=Const(1)))


def test_f4_the_linear_stage_must_be_there_and_linear() -> None:
    refused("PROGRAM missing LINEAR stage", replace(PROGRAM, linear=None))
    refused("PROGRAM linear stage must be LINEAR op, got Source", replace(PROGRAM, linear=Source("x")))


def test_f5_the_source_stage_must_be_there_and_source() -> None:
    refused("PROGRAM missing SOURCE stage", replace(PROGRAM, source=None))
    refused("PROGRAM source stage must be SOURCE op, got Linear", replace(PROGRAM, source=Linear()))


def test_f6_a_binary_may_be_absent_but_not_something_else() -> None:
    ProgramSpec.from_program(replace(PROGRAM, binary=ProgramBinary(b"cubin")))
    refused("PROGRAM binary stage must be ProgramBinary op, got Const", replace(PROGRAM, binary=Const(1)))


def test_stages_are_judged_in_order() -> None:
    refused(
        "PROGRAM sink stage must be SINK op, got Const",
        ProgramNode(sink=Const(1), device=Const(2), linear=None, source=None, binary=Const(3)),
    )


META = ProgramSpec(
    name="tuned",
    device="ignored",
    vars=(Variable(name="m", min=0, max=3),),
    var_names=("m", "extra"),
    globals=(4, 5, 6),
    outs=(6,),
    ins=(4, 5),
    buf_count=7,
)


def test_f7_metadata_takes_precedence_field_by_field() -> None:
    spec = ProgramSpec.from_program(replace(PROGRAM, metadata=META))
    assert (spec.name, spec.vars, spec.var_names) == ("tuned", META.vars, META.var_names)
    assert (spec.globals, spec.outs, spec.ins, spec.buf_count) == ((4, 5, 6), (6,), (4, 5), 7)
    assert (spec.device, spec.src) == ("CUDA:1", "ptx")


def test_f7_empty_metadata_fields_fall_back_to_the_sink() -> None:
    spec = ProgramSpec.from_program(replace(PROGRAM, metadata=ProgramSpec.new("tuned", None, "CPU")))
    assert (spec.var_names, spec.globals, spec.outs, spec.ins, spec.buf_count) == (("n",), (0, 1), (1,), (0,), 2)


def test_f7_buf_count_follows_the_globals_that_were_chosen() -> None:
    metadata = ProgramSpec.new("tuned", None, "CPU").with_buffer_metadata([0, 1, 2], [], [])
    assert ProgramSpec.from_program(replace(PROGRAM, metadata=metadata)).buf_count == 3


def test_f8_default_launch_sizes_in_the_metadata_do_not_count() -> None:
    spec = ProgramSpec.from_program(replace(PROGRAM, metadata=META))
    assert (spec.global_size, spec.local_size) == ((N, 1, 1), (1, 1, 1))


@pytest.mark.parametrize(
    ("global_size", "local_size"),
    [((2, 1, 1), (1, 1, 1)), ((1, 1, 1), None), ((1, 1, 1), (1, 32, 1)), ((symbol("m"), 1, 1), (1, 1, 1))],
)
def test_f8_any_other_launch_size_in_the_metadata_decides_both(
    global_size: tuple[int, int, int], local_size: tuple[int, int, int] | None
) -> None:
    metadata = META.with_launch_dims(global_size, local_size)
    spec = ProgramSpec.from_program(replace(PROGRAM, metadata=metadata))
    assert (spec.global_size, spec.local_size) == (global_size, local_size)
