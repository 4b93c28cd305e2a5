"""From schedules to the LLVM dialect: what the code of a kernel looks like."""

from __future__ import annotations

import re

import pytest

from dialect.mlir import ir
from passes.codegen.translate import only_llvm
from passes.lower import lower_to_llvm
from passes.schedule.sum_blocks import ACCUMULATOR_TERMS, ROW_TERMS
from tensorkiln.build import Builder, flip, gather, matmul, pad, scatter, softmax
from tensorkiln.errors import DiagnosticError
from tensorkiln.graph import Graph
from tests.filecheck import check_ir
from tests.passes.modules import after, output


def added() -> Graph:
    b = Builder("added")
    n = b.symbol("n", 1, 512)
    return output(b, b.input("float32", (n, 8)) + b.input("float32", (n, 8)))


def dense() -> Graph:
    b = Builder("dense")
    return output(b, matmul(b.input("float32", (64, 64)), b.input("float32", (64, 64))))


def normalised() -> Graph:
    b = Builder("softmax")
    return output(b, softmax(b.input("float32", (32, 1000)), -1))


def padded() -> Graph:
    b = Builder("padded")
    return output(b, pad(b.input("float32", (40, 6)), [(0, 0), (2, 3)]))


def flipped() -> Graph:
    b = Builder("flip")
    return output(b, flip(b.input("float32", (40, 6)), 1))


def gathered() -> Graph:
    b = Builder("gather")
    return output(b, gather(b.input("float32", (9, 6)), b.input("int64", (4, 6)), 0))


def scattered() -> Graph:
    b = Builder("scatter")
    return output(b, scatter(b.input("int32", (4, 8)), b.input("bfloat16", (4, 8)), 1, (4, 16)))


GRAPHS = {make.__name__: make for make in (added, dense, normalised, padded, flipped, gathered, scattered)}


def operations(module: ir.Module) -> set[str]:
    """The names of all ops below the module."""
    found: set[str] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.add(op.name)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found - {"builtin.module"}


def test_a_body_takes_unshared_pointers_symbols_and_a_range() -> None:
    check_ir(
        after("realise", added()),
        """
        // CHECK: func.func @kernel_0_body(
        // CHECK-SAME: %[[X:[^:]*]]: memref<f32> {llvm.noalias}, %[[Y:[^:]*]]: memref<f32> {llvm.noalias},
        // CHECK-SAME: %[[OUT:[^:]*]]: memref<f32> {llvm.noalias},
        // CHECK-SAME: %[[N:[^:]*]]: index, %[[FIRST:[^:]*]]: index, %[[LAST:[^:]*]]: index)
        // CHECK-SAME: llvm.linkage = #llvm.linkage<internal>
        // CHECK: %[[RUNS:.*]] = arith.cmpi slt, %[[FIRST]], %[[LAST]]
        // CHECK: scf.if %[[RUNS]]
        // CHECK: linalg.generic
        // CHECK: arith.addf
        """,
    )


def test_the_pieces_of_one_long_loop_follow_each_other_in_one_loop() -> None:
    b = Builder("long")
    n = b.symbol("n", 1, 1 << 20)
    x = b.input("float32", (n, 96))
    check_ir(
        after("realise", output(b, x * x)),
        """
        // CHECK: %[[N:[^:]*]]: index, %[[FIRST:[^:]*]]: index, %[[LAST:[^:]*]]: index)
        // CHECK: arith.muli %[[FIRST]]
        // CHECK: arith.muli %[[LAST]]
        // CHECK: arith.minsi
        // CHECK-NOT: scf.for
        // CHECK: linalg.generic
        // CHECK-NOT: scf.for
        // CHECK: return
        """,
    )


def test_rows_of_updates_are_added_by_vectors() -> None:
    b = Builder("rows")
    indices, updates = b.input("int32", (100, 1)), b.input("float32", (100, 64))
    check_ir(
        after("realise", output(b, scatter(indices.expand(100, 64), updates, 0, (30, 64), reduction="add"))),
        """
        // CHECK: vector.store %{{.*}} : {{.*}}, vector<8xf32>
        // CHECK: scf.for
        // CHECK: memref.load
        // CHECK: arith.cmpi ult
        // CHECK: scf.if
        // CHECK: scf.for
        // CHECK-COUNT-2: vector.load
        // CHECK: arith.addf {{.*}} : vector<8xf32>
        // CHECK: vector.store
        """,
    )


def test_movement_costs_a_stride() -> None:
    check_ir(
        after("realise", flipped()),
        """
        // CHECK: memref.reinterpret_cast %arg0 to {{.*}}strides: [6, -1]
        // CHECK: linalg.generic
        // CHECK-NOT: arith.select
        // CHECK-NOT: scf.if
        // CHECK: linalg.yield
        """,
    )


def test_a_mask_is_a_guarded_load() -> None:
    check_ir(
        after("realise", padded(), "cpu:x86-64-v2"),
        """
        // CHECK: linalg.generic
        // CHECK: %[[INSIDE:.*]] = arith.andi
        // CHECK: scf.if %[[INSIDE]] -> (f32)
        // CHECK: memref.load
        // CHECK: } else {
        // CHECK: scf.yield %{{.*}} : f32
        """,
    )


def test_a_gather_compares_its_index_as_unsigned_before_it_loads() -> None:
    check_ir(
        after("realise", gathered()),
        """
        // CHECK: arith.index_cast %{{.*}} : i64 to index
        // CHECK: %[[INSIDE:.*]] = arith.cmpi ult
        // CHECK: scf.if %[[INSIDE]] -> (f32)
        """,
    )


def test_a_softmax_is_four_loop_nests_inside_one_row_loop() -> None:
    """The last is there for sums without a reciprocal, too, and the first for maxima that it leaves uncertain."""
    text = str(after("realise", normalised()))
    assert text.count("linalg.generic") == 6
    check_ir(
        text,
        """
        // CHECK: memref.alloca() : memref<f32>
        // CHECK: scf.for
        // CHECK: linalg.generic
        // CHECK: scf.if
        // CHECK: scf.yield
        // CHECK: } else {
        // CHECK-COUNT-3: linalg.generic
        // CHECK: scf.if
        // CHECK: linalg.generic
        // CHECK: math.fma
        // CHECK: } else {
        // CHECK: linalg.generic
        // CHECK: arith.divf
        // CHECK-NOT: memref.alloca
        // CHECK: return
        """,
    )


def test_long_rows_that_are_reduced_alone_are_read_four_at_once() -> None:
    b = Builder("product")
    matrix, vector = b.input("float32", (b.symbol("n", 1, 900), 512)), b.input("float32", (512,))
    check_ir(
        after("realise", output(b, matrix @ vector)),
        """
        // CHECK: scf.for {{.*}} step %c4
        // CHECK-COUNT-3: arith.minsi
        // CHECK: linalg.generic
        // CHECK-SAME: iterator_types = ["reduction"]} ins(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} :
        // CHECK: scf.if
        // CHECK-NEXT: reinterpret_cast
        // CHECK-NEXT: memref.store
        // CHECK-COUNT-3: scf.if
        // CHECK-NOT: linalg.generic
        """,
    )


def test_a_long_sum_is_one_of_blocks_that_are_added_in_float64() -> None:
    b = Builder("long")
    check_ir(
        after("realise", output(b, b.input("float32", (1 << 19,)).sum())),
        """
        // CHECK: %[[BLOCK:.*]] = memref.alloca() : memref<f32>
        // CHECK: %[[TOTAL:.*]] = memref.alloca() : memref<f64>
        // CHECK: %[[COUNT:.*]] = arith.constant 128 : index
        // CHECK: scf.for %{{.*}} to %[[COUNT]]
        // CHECK: linalg.generic {{.*}}outs(%[[BLOCK]] : memref<f32>)
        // CHECK: arith.addf {{.*}}fastmath<reassoc> : f32
        // CHECK: arith.extf %{{.*}} : f32 to f64
        // CHECK: arith.addf %{{.*}}, %{{[^ ]*}} : f64
        // CHECK: memref.store %{{.*}}, %[[TOTAL]][]
        // CHECK: arith.truncf %{{.*}} : f64 to f32
        """,
    )


def test_long_sums_of_rows_go_block_by_block_through_four_of_them() -> None:
    b = Builder("product")
    matrix, vector = b.input("float32", (b.symbol("n", 1, 900), 3 * ROW_TERMS)), b.input("float32", (3 * ROW_TERMS,))
    check_ir(
        after("realise", output(b, matrix @ vector)),
        """
        // CHECK-COUNT-4: memref.alloca() : memref<f64>
        // CHECK: scf.for {{.*}} step %c4
        // CHECK: %[[BLOCKS:.*]] = arith.constant 3 : index
        // CHECK-COUNT-4: memref.store %{{.*}} : memref<f64>
        // CHECK: scf.for %{{.*}} to %[[BLOCKS]]
        // CHECK: linalg.generic
        // CHECK-SAME: iterator_types = ["reduction"]} ins(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} :
        // CHECK-COUNT-4: arith.addf {{.*}} : f64
        // CHECK-NOT: linalg.generic
        // CHECK-COUNT-4: arith.truncf
        // CHECK-COUNT-4: scf.if
        """,
    )


def test_a_long_sum_of_columns_has_a_total_for_each() -> None:
    b = Builder("columns")
    check_ir(
        after("realise", output(b, b.input("float32", (2048, 100)).sum(0))),
        """
        // CHECK: func.func @kernel_0_body(
        // CHECK-SAME: %[[TOTALS:[^:]*]]: memref<f64> {llvm.noalias}, %{{[^:]*}}: index
        // CHECK: linalg.generic {{.*}}outs(%{{.*}}, %{{.*}} : memref<100xf64, {{.*}}>, memref<100xf32
        // CHECK: %[[COUNT:.*]] = arith.constant 4 : index
        // CHECK: scf.for %{{.*}} to %[[COUNT]]
        // CHECK: iterator_types = ["reduction", "parallel"]
        // CHECK: arith.extf
        // CHECK: arith.truncf
        """,
    )


@pytest.mark.parametrize(
    ("kind", "dtype", "shape", "axis"),
    [
        ("sum", "float32", (ROW_TERMS,), 0),
        ("sum", "float32", (ACCUMULATOR_TERMS, 64), 0),
        ("sum", "int32", (1 << 19,), 0),
        ("max", "float32", (1 << 19,), 0),
        ("prod", "float32", (1 << 19,), 0),
    ],
)
def test_short_reductions_are_not_cut_into_blocks(kind: str, dtype: str, shape: tuple[int, ...], axis: int) -> None:
    b = Builder("short")
    x = b.input(dtype, shape)
    text = str(after("realise", output(b, {"sum": x.sum, "max": x.max, "prod": x.prod}[kind](axis=axis))))
    assert "f64" not in text
    assert text.count("scf.for") == 1


def test_a_contraction_calls_the_functions_that_all_share() -> None:
    check_ir(
        after("realise", dense()),
        """
        // CHECK-DAG: func.func private @multiply_float32_{{.*}}llvm.no_inline
        // CHECK-DAG: func.func private @pack_float32_{{.*}}llvm.no_inline
        // CHECK: func.func @kernel_0_body
        // CHECK: call @pack_float32
        // CHECK: call @multiply_float32
        """,
    )


def test_contractions_of_one_tile_share_one_multiplication() -> None:
    b = Builder("chain")
    x = b.input("float32", (64, 64))
    text = str(after("realise", output(b, matmul(matmul(x, x), x))))
    assert len(re.findall(r"func\.func private @multiply_", text)) == 1
    assert len(re.findall(r"call @multiply_", text)) == 2


@pytest.mark.parametrize("kind", GRAPHS)
def test_only_the_llvm_dialect_remains(kind: str) -> None:
    assert all(name.startswith("llvm.") for name in operations(after("lower", GRAPHS[kind]())))


def test_a_lowered_body_takes_bare_pointers_that_do_not_alias() -> None:
    check_ir(
        after("entries", added()),
        """
        // CHECK: llvm.func internal @kernel_0_body(
        // CHECK-SAME: %{{[^:]*}}: !llvm.ptr {llvm.noalias}, %{{[^:]*}}: !llvm.ptr {llvm.noalias},
        // CHECK-SAME: %{{[^:]*}}: !llvm.ptr {llvm.noalias},
        // CHECK-SAME: %{{[^:]*}}: i64, %{{[^:]*}}: i64, %{{[^:]*}}: i64)
        // CHECK-SAME: always_inline
        """,
    )


def test_the_entry_has_the_signature_of_the_abi_and_unpacks_it_in_order() -> None:
    text = str(after("entries", added()))
    check_ir(
        text[text.index("llvm.func @kernel_0(") :],
        """
        // CHECK: llvm.func @kernel_0(%[[TABLE:[^:]*]]: !llvm.ptr, %[[VALUES:[^:]*]]: !llvm.ptr,
        // CHECK-SAME: %[[FIRST:[^:]*]]: i64, %[[LAST:[^:]*]]: i64)
        // CHECK: llvm.getelementptr %[[TABLE]][0]
        // CHECK-NEXT: %[[A:.*]] = llvm.load
        // CHECK-NEXT: llvm.getelementptr %[[TABLE]][1]
        // CHECK-NEXT: %[[B:.*]] = llvm.load
        // CHECK-NEXT: llvm.getelementptr %[[TABLE]][2]
        // CHECK-NEXT: %[[C:.*]] = llvm.load
        // CHECK-NEXT: llvm.getelementptr %[[VALUES]][0]
        // CHECK-NEXT: %[[N:.*]] = llvm.load
        // CHECK-NEXT: llvm.call @kernel_0_body(%[[A]], %[[B]], %[[C]], %[[N]], %[[FIRST]], %[[LAST]])
        // CHECK-NEXT: llvm.return
        """,
    )


def test_attributes_of_the_compiler_are_dropped() -> None:
    assert "kiln." not in str(after("entries", added()))


def test_an_operation_without_a_lowering_is_left_for_the_guard_to_name() -> None:
    text = """
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = tensor.empty() : tensor<4xf32>
      return %y : tensor<4xf32>
    }
    """
    with ir.Context() as context:
        lowered = lower_to_llvm(ir.Module.parse(text, context))
        with pytest.raises(DiagnosticError, match=r"were not lowered to LLVM: .*tensor.empty"):
            only_llvm(lowered)
