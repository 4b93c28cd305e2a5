"""What the code of a kernel on a GPU looks like."""

from __future__ import annotations

import re

import pytest

from dialect.mlir import ir
from passes.gpu.shared_memory import dynamic_bytes, static_bytes
from tensorkiln.dtypes import DType
from tensorkiln.expr import evaluate, symbol
from tensorkiln.schedule import SharedArray
from tests.filecheck import check_ir
from tests.passes.modules import after

from .graphs import GRAPHS, TARGET


def realised(name: str) -> ir.Module:
    return after("realise", GRAPHS[name](), TARGET)


def test_neighbouring_elements_are_one_wide_access_behind_one_comparison() -> None:
    text = str(realised("added"))
    check_ir(
        text,
        """
        // CHECK: func.func @kernel_0(
        // CHECK-SAME: memref<f32> {llvm.align = 16 : i64, llvm.noalias, llvm.readonly},
        // CHECK-SAME: memref<f32> {llvm.align = 16 : i64, llvm.noalias, llvm.readonly},
        // CHECK-SAME: memref<f32> {llvm.align = 16 : i64, llvm.noalias})
        // CHECK: nvvm.read.ptx.sreg.ctaid.x
        // CHECK: nvvm.read.ptx.sreg.tid.x
        // CHECK: arith.cmpi ult
        // CHECK: scf.if
        // CHECK: vector.load {{.*}}alignment = 16
        // CHECK: vector.load {{.*}}alignment = 16
        // CHECK: vector.store {{.*}}alignment = 16
        """,
    )
    assert text.count("arith.cmpi ult") == 1


def test_a_length_that_is_not_known_to_fill_vectors_has_a_rest() -> None:
    check_ir(
        realised("added_symbolic"),
        """
        // CHECK: scf.if
        // CHECK: vector.store
        // CHECK: } else {
        // CHECK: scf.for
        // CHECK-NOT: vector.
        // CHECK: memref.store
        """,
    )


def test_lanes_combine_by_shuffles_and_once_through_shared_memory() -> None:
    text = str(realised("softmax_rows"))
    check_ir(
        text,
        """
        // CHECK-DAG: memref.global "private" @kernel_0_shared_0 : memref<16xf32, 3> = uninitialized {alignment = 16
        // CHECK-DAG: memref.global "private" @kernel_0_shared_1 : memref<1024xf32, 3> = uninitialized {alignment = 16
        // CHECK: scf.for
        // CHECK-COUNT-5: nvvm.shfl.sync bfly
        // CHECK: nvvm.barrier
        // CHECK-COUNT-3: nvvm.shfl.sync bfly
        """,
    )
    assert text.count("nvvm.shfl.sync") == 16
    assert text.count("nvvm.barrier") == 2


def test_shared_memory_of_symbolic_size_is_left_to_the_launch() -> None:
    check_ir(
        realised("softmax_symbolic"),
        """
        // CHECK-NOT: memref.global "private"
        // CHECK: memref.global @dynamic_shared_memory : memref<0xi8, 3> {alignment = 16 : i64}
        // CHECK: memref.get_global @dynamic_shared_memory
        // CHECK: memref.view
        """,
    )


def test_arrays_of_a_work_group_are_all_of_its_code_or_all_of_its_launch() -> None:
    n = symbol("n")
    constant, symbolic = SharedArray(dtype=DType.FLOAT16, elements=3), SharedArray(dtype=DType.FLOAT32, elements=n)
    assert (static_bytes([]), dynamic_bytes([])) == (0, 0)
    assert (static_bytes([constant, constant]), dynamic_bytes([constant, constant])) == (32, 0)
    mixed = [constant, symbolic]
    assert static_bytes(mixed) == 0
    assert [evaluate(dynamic_bytes(mixed), {"n": value}) for value in (0, 1, 5)] == [16, 32, 48]


def test_a_short_row_has_one_thread_and_no_barrier() -> None:
    text = str(realised("short_rows"))
    assert "nvvm.barrier" not in text
    assert "nvvm.shfl" not in text


def test_columns_are_halved_in_shared_memory() -> None:
    text = str(realised("columns"))
    assert "memref<1024xf32, 3>" in text
    assert text.count("nvvm.barrier") == 6


def test_a_contraction_fetches_ahead_and_waits_before_and_after_each_step() -> None:
    check_ir(
        realised("dense"),
        """
        // CHECK-COUNT-2: scf.if
        // CHECK: scf.for {{.*}} iter_args(
        // CHECK-COUNT-2: memref.store {{.*}} 3>
        // CHECK-NEXT: nvvm.barrier
        // CHECK-COUNT-2: scf.if
        // CHECK: scf.for {{.*}} iter_args(
        // CHECK-COUNT-8: arith.addf {{.*}} fastmath<contract>
        // CHECK: nvvm.barrier
        // CHECK: nvvm.barrier
        // CHECK: scf.for
        // CHECK: memref.store
        """,
    )


def test_a_scatter_settles_the_last_update_by_an_atomic_maximum() -> None:
    check_ir(
        realised("scattered"),
        """
        // CHECK: nvvm.barrier
        // CHECK: arith.cmpi ult
        // CHECK: memref.atomic_rmw maxs
        // CHECK: nvvm.barrier
        """,
    )


def test_a_thread_combines_the_updates_of_its_own_elements_without_barriers() -> None:
    check_ir(
        realised("summed_rows"),
        """
        // CHECK: scf.for
        // CHECK: memref.store
        // CHECK: scf.for
        // CHECK: arith.cmpi ult
        // CHECK: scf.if
        // CHECK: arith.cmpi eq
        // CHECK: scf.if
        // CHECK: arith.addf
        // CHECK: memref.store
        // CHECK-NOT: memref.atomic_rmw
        // CHECK-NOT: nvvm.barrier
        """,
    )


@pytest.mark.parametrize("name", GRAPHS)
def test_only_the_llvm_and_nvvm_dialects_remain(name: str) -> None:
    found = set(re.findall(r"(?m)^\s+(?:%\S+ = )?\"?([a-z_]+)\.", str(after("entries", GRAPHS[name](), TARGET))))
    assert found <= {"llvm", "nvvm"}


def test_an_entry_says_how_many_threads_run_it() -> None:
    check_ir(
        after("entries", GRAPHS["added"](), TARGET),
        """
        // CHECK: llvm.func @kernel_0(%{{[^:]*}}: !llvm.ptr
        // CHECK-SAME: attributes {nvvm.kernel, nvvm.reqntid = array<i32: 256, 1, 1>}
        """,
    )
