"""M1-M7: what a kernel's sink says about its interface."""

from __future__ import annotations

import pytest

from tensorkiln.dtypes import DType
from tensorkiln.errors import DiagnosticError
from tensorkiln.expr import floordiv, minimum, symbol
from tensorkiln.launch import (
    Binary,
    BinaryOp,
    Bind,
    Cast,
    Const,
    DefineVar,
    LaunchNode,
    Ternary,
    TernaryOp,
    Unary,
    UnaryOp,
    Variable,
    dim_from_launch,
    launch_from_dim,
)
from tensorkiln.program_ast import Index, Load, Param, Sink, Special, Store
from tensorkiln.spec import ProgramSpec, derive_metadata, special_axis

N = DefineVar("n", 1, 64)
IDX0 = Special(Const(8), "idx0")


def copy_kernel(source: int = 0, target: int = 1) -> Sink:
    """`target[gidx0] = source[gidx0]`, with `n` work-groups."""
    group = Special(N, "gidx0")
    return Sink((Store(Index(Param(target), (group,)), Load(Index(Param(source), (group,)))),))


def test_m1_variables_of_the_kernel_are_found() -> None:
    derived = derive_metadata(Sink((Binary(BinaryOp.ADD, N, DefineVar("m", 0, 9)),)))
    assert derived.vars == (Variable(name="m", min=0, max=9), Variable(name="n", min=1, max=64))


def test_m1_core_id_sets_the_grid_to_the_number_of_cores() -> None:
    assert derive_metadata(Sink((DefineVar("core_id", 0, 7),))).global_size == (8, 1, 1)
    assert derive_metadata(Sink((DefineVar("core", 0, 7),))).global_size == (1, 1, 1)


def test_m1_the_number_of_cores_saturates() -> None:
    most = (1 << 63) - 1
    assert derive_metadata(Sink((DefineVar("core_id", 0, most),))).global_size == (most, 1, 1)


def test_m2_parameters_are_globals_unless_they_are_placed_on_a_device() -> None:
    sink = Sink((Param(3), Param(0), Param(7, device="CUDA:1")))
    assert derive_metadata(sink).globals == (0, 3)


@pytest.mark.parametrize(
    ("name", "axis"),
    [
        ("gidx0", ("global", 0)),
        ("gidx00", ("global", 0)),
        ("g2", ("global", 2)),
        ("lidx1", ("local", 1)),
        ("idx2", ("direct_global", 2)),
        ("gidx10", None),
        ("gidx3", None),
        ("gidx", None),
        ("xidx0", None),
        ("0", None),
        ("", None),
    ],
)
def test_m3_the_first_letter_is_the_kind_and_the_trailing_digits_the_axis(
    name: str, axis: tuple[str, int] | None
) -> None:
    assert special_axis(name) == axis


@pytest.mark.parametrize("name", ["gidx10", "gidx", "xidx0", ""])
def test_m3_a_launch_index_without_an_axis_is_refused_rather_than_ignored(name: str) -> None:
    with pytest.raises(DiagnosticError, match="invalid SPECIAL axis name"):
        derive_metadata(Sink((Special(Const(4), name),)))


def test_m4_work_group_and_thread_indices_set_their_sizes() -> None:
    sink = Sink((Special(N, "gidx0"), Special(Const(4), "gidx1"), Special(Const(32), "lidx0")))
    derived = derive_metadata(sink)
    assert (derived.global_size, derived.local_size) == ((symbol("n"), 4, 1), (32, 1, 1))


def test_m4_without_thread_indices_a_group_is_one_thread() -> None:
    assert derive_metadata(Sink((Special(N, "gidx0"),))).local_size == (1, 1, 1)


def test_m4_a_direct_global_index_leaves_no_local_size() -> None:
    derived = derive_metadata(Sink((IDX0, Special(Const(3), "idx2"))))
    assert (derived.global_size, derived.local_size) == ((8, 1, 3), None)


@pytest.mark.parametrize("other", ["lidx0", "gidx1"])
@pytest.mark.parametrize("is_first", [True, False])
def test_m4_direct_and_grouped_indices_do_not_mix_in_any_order(other: str, is_first: bool) -> None:
    specials = (IDX0, Special(Const(2), other))
    with pytest.raises(DiagnosticError, match="direct global indices cannot be mixed"):
        derive_metadata(Sink(specials if is_first else specials[::-1]))


def test_m5_stores_are_outs_and_loads_are_ins() -> None:
    derived = derive_metadata(copy_kernel(source=2, target=5))
    assert (derived.outs, derived.ins, derived.globals) == ((5,), (2,), (2, 5))


def test_m5_an_address_may_pass_through_one_cast() -> None:
    address = Index(Param(1), (Const(0),))
    once, twice = Cast(address, DType.INT32), Cast(Cast(address, DType.INT32), DType.INT64)
    assert derive_metadata(Sink((Store(once, Const(0)),))).outs == (1,)
    assert derive_metadata(Sink((Store(twice, Const(0)),))).outs == ()


def test_m5_placed_buffers_and_other_addresses_are_not_counted() -> None:
    placed = Store(Index(Param(1, device="CPU"), (Const(0),)), Const(0))
    computed = Load(Binary(BinaryOp.ADD, Const(1), Const(2)))
    derived = derive_metadata(Sink((placed, computed)))
    assert (derived.outs, derived.ins) == ((), ())


def test_m6_variables_are_sorted_by_name_and_named_once() -> None:
    same = DefineVar("n", 1, 64)
    derived = derive_metadata(Sink((DefineVar("z", 0, 1), N, DefineVar("a", 0, 1), same)))
    assert derived.var_names == ("a", "n", "z")
    assert tuple(variable.name for variable in derived.vars) == derived.var_names


def test_m6_two_bounds_for_one_variable_are_refused() -> None:
    with pytest.raises(DiagnosticError, match=r"variable n is defined with the bounds \[1, 64\] and \[1, 65\]"):
        derive_metadata(Sink((N, DefineVar("n", 1, 65))))


def test_m6_a_buffer_that_is_loaded_and_stored_is_in_both_lists_once() -> None:
    address = Index(Param(0), (Const(0),))
    again = Index(Param(0), (Const(1),))
    sink = Sink((Store(address, Load(address)), Store(again, Load(again))))
    derived = derive_metadata(sink)
    assert (derived.outs, derived.ins, derived.globals) == ((0,), (0,), (0,))


def test_m7_derived_slots_and_sizes_always_replace() -> None:
    before = ProgramSpec.new("k", None, "CPU").with_buffer_metadata([9], [9], [9]).with_work_sizes((5, 5, 5), (5, 5, 5))
    spec = before.with_derived_metadata(copy_kernel())
    assert (spec.globals, spec.outs, spec.ins) == ((0, 1), (1,), (0,))
    assert (spec.global_size, spec.local_size) == ((symbol("n"), 1, 1), (1, 1, 1))


def test_m7_variables_and_their_order_replace_only_what_is_empty() -> None:
    other = Variable(name="other", min=0, max=1)
    empty = ProgramSpec.new("k", None, "CPU").with_derived_metadata(copy_kernel())
    assert (empty.vars, empty.var_names) == ((Variable(name="n", min=1, max=64),), ("n",))
    given = ProgramSpec.new("k", None, "CPU").with_var(other).with_var_names(["other"])
    spec = given.with_derived_metadata(copy_kernel())
    assert (spec.vars, spec.var_names) == ((other,), ("other",))


def test_m7_buf_count_is_the_number_of_globals_only_where_it_is_zero() -> None:
    spec = ProgramSpec.new("k", None, "CPU")
    assert spec.with_derived_metadata(copy_kernel()).buf_count == 2
    assert spec.model_copy(update={"buf_count": 5}).with_derived_metadata(copy_kernel()).buf_count == 5


n = symbol("n")


@pytest.mark.parametrize(
    ("expr", "dim"),
    [
        (Const(True), 1),
        (Bind(N, Const(7)), 7),
        (Binary(BinaryOp.SHL, Const(1), Const(5)), 32),
        (Ternary(TernaryOp.MULACC, N, Const(16), Const(-1)), 16 * n - 1),
        (Unary(UnaryOp.NEG, N), -n),
        (Unary(UnaryOp.SQUARE, N), n * n),
        (Unary(UnaryOp.CEIL, Cast(N, DType.INT32)), n),
        (Binary(BinaryOp.FLOOR_DIV, N, Const(4)), floordiv(n, 4)),
        (launch_from_dim(minimum(n, 8), {"n": Variable(name="n", min=1, max=64)}), minimum(n, 8)),
    ],
)
def test_a_launch_expression_becomes_a_dim(expr: LaunchNode, dim: object) -> None:
    assert dim_from_launch(expr) == dim


@pytest.mark.parametrize(
    "expr", [Binary(BinaryOp.AND, N, Const(7)), Binary(BinaryOp.LT, N, Const(7)), Unary(UnaryOp.SQRT, N), Bind(N, N)]
)
def test_a_launch_expression_that_no_dim_says_is_refused(expr: LaunchNode) -> None:
    with pytest.raises(DiagnosticError, match="cannot be written as a dimension"):
        dim_from_launch(expr)
