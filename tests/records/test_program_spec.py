"""P1-P3 and C1-C5: how specs are made."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tensorkiln.expr import symbol
from tensorkiln.spec import CompiledSpec, ProgramSpec, Variable

AST = "a" * 64


def test_p1_a_new_spec_has_launch_sizes_of_one_and_nothing_else() -> None:
    spec = ProgramSpec.new("k", "source", "CPU")
    assert (spec.name, spec.entry, spec.src, spec.device) == ("k", "k", "source", "CPU")
    assert (spec.global_size, spec.local_size) == ((1, 1, 1), (1, 1, 1))
    assert (spec.vars, spec.var_names, spec.globals, spec.outs, spec.ins, spec.buf_count) == ((), (), (), (), (), 0)


def test_p2_variables_are_appended_without_looking_for_doubles() -> None:
    n = Variable(name="n", min=1, max=2)
    assert ProgramSpec.new("k", None, "CPU").with_var(n).with_var(n).vars == (n, n)


def test_p2_work_sizes_set_both_sizes() -> None:
    spec = ProgramSpec.new("k", None, "CPU").with_launch_dims((1, 1, 1), None).with_work_sizes((4, 5, 6), (7, 8, 9))
    assert (spec.global_size, spec.local_size) == ((4, 5, 6), (7, 8, 9))


def test_p2_launch_dims_may_be_symbolic_and_have_no_local_size() -> None:
    n = symbol("n")
    spec = ProgramSpec.new("k", None, "CPU").with_launch_dims((n, 2, 1), None)
    assert (spec.global_size, spec.local_size) == ((n, 2, 1), None)


def test_p2_names_and_slots_are_replaced() -> None:
    spec = ProgramSpec.new("k", None, "CPU").with_var_names(["a"]).with_var_names(["b", "c"])
    spec = spec.with_buffer_metadata([9], [9], []).with_buffer_metadata([0, 1], [1], [0])
    assert (spec.var_names, spec.globals, spec.outs, spec.ins) == (("b", "c"), (0, 1), (1,), (0,))


def test_p3_the_bounds_of_a_variable_are_inclusive() -> None:
    one = Variable(name="n", min=5, max=5)
    assert (one.name, one.min, one.max) == ("n", 5, 5)
    with pytest.raises(ValidationError, match="variable n has the empty bounds"):
        Variable(name="n", min=5, max=4)


def test_slots_outside_the_arguments_are_refused() -> None:
    with pytest.raises(ValidationError, match="kernel k has outs"):
        ProgramSpec(name="k", device="CPU", buf_count=2, outs=(2,))
    with pytest.raises(ValidationError, match="kernel k has 1 buffers but buf_count 2"):
        ProgramSpec(name="k", device="CPU", buf_count=2, buffers=(0,))


def test_c1_a_compiled_spec_has_the_fields_of_the_contract() -> None:
    assert set(CompiledSpec.model_fields) == {
        *("name", "src", "bytes", "ast"),
        *("var_names", "global_size", "local_size", "buf_count"),
    }


def test_c2_from_source_has_no_bytes_and_launch_sizes_of_one() -> None:
    spec = CompiledSpec.from_source("k", "text", AST, 3)
    assert (spec.name, spec.src, spec.bytes, spec.ast, spec.buf_count) == ("k", "text", b"", AST, 3)
    assert (spec.var_names, spec.global_size, spec.local_size) == ((), (1, 1, 1), (1, 1, 1))


def test_c3_from_bytes_has_no_source_and_a_buf_count_of_zero() -> None:
    spec = CompiledSpec.from_bytes("k", b"\x7fELF", AST)
    assert (spec.src, spec.bytes, spec.buf_count) == (None, b"\x7fELF", 0)
    assert (spec.global_size, spec.local_size) == ((1, 1, 1), (1, 1, 1))


@pytest.mark.parametrize("local", [(8, 4, 1), None])
def test_c4_from_source_with_sizes_keeps_the_sizes(local: tuple[int, int, int] | None) -> None:
    spec = CompiledSpec.from_source_with_sizes("k", "text", AST, (16, 2, 1), local, 2)
    assert (spec.global_size, spec.local_size, spec.buf_count, spec.bytes) == ((16, 2, 1), local, 2, b"")


def test_c5_no_local_size_survives_serialization_and_is_not_one() -> None:
    direct = CompiledSpec.from_source_with_sizes("k", "text", AST, (16, 1, 1), None, 1)
    ones = CompiledSpec.from_source_with_sizes("k", "text", AST, (16, 1, 1), (1, 1, 1), 1)
    assert CompiledSpec.model_validate_json(direct.model_dump_json()).local_size is None
    assert CompiledSpec.model_validate_json(ones.model_dump_json()) == ones != direct
    spec = ProgramSpec.new("k", None, "CPU").with_launch_dims((symbol("n"), 1, 1), None)
    assert ProgramSpec.model_validate_json(spec.model_dump_json()) == spec


def test_machine_code_survives_serialization() -> None:
    spec = CompiledSpec.from_bytes("k", bytes(range(256)), AST)
    assert CompiledSpec.model_validate_json(spec.model_dump_json()) == spec


DIGEST = "d" * 64


def test_a_spec_asks_for_no_shared_memory_or_alignment_unless_it_says_so() -> None:
    spec = ProgramSpec.new("k", None, "CUDA")
    assert (spec.static_shared_bytes, spec.dynamic_shared_bytes, spec.alignments) == (0, 0, ())
    assert spec.no_overlap
    assert spec.binary is None


def test_requirements_of_a_gpu_kernel_survive_serialization() -> None:
    spec = ProgramSpec(
        name="k",
        artifact=AST,
        binary=DIGEST,
        device="CUDA",
        buf_count=2,
        static_shared_bytes=1024,
        dynamic_shared_bytes=4 * symbol("n"),
        alignments=(16, 4),
        no_overlap=False,
    )
    assert ProgramSpec.model_validate_json(spec.model_dump_json()) == spec


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"alignments": (16,), "buf_count": 2}, "kernel k has 1 alignments but buf_count 2"),
        ({"alignments": (16, 12), "buf_count": 2}, "alignment 12, which is not a power of two"),
        ({"alignments": (0,), "buf_count": 1}, "alignment 0, which is not a power of two"),
        ({"static_shared_bytes": -1}, "greater than or equal to 0"),
        ({"dynamic_shared_bytes": -4}, "-4 bytes of dynamic shared memory"),
        ({"binary": DIGEST}, "a binary but no artifact"),
        ({"binary": "cubin", "artifact": AST}, "should match pattern"),
    ],
)
def test_requirements_that_cannot_be_met_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ProgramSpec.model_validate({"name": "k", "device": "CUDA"} | fields)
