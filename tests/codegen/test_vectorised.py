"""Functions whose loops are in vectors are optimised by few passes, the others by LLVM's pipeline."""

from __future__ import annotations

import re

import numpy as np
import pytest

from passes.codegen import object_code
from passes.codegen.vectorised import vectorised
from tensorkiln.build import Builder, matmul, relu
from tensorkiln.graph import Graph
from tests import checked
from tests.compiled import compiled, target

LOOP = """
define internal void @{name}(ptr noalias %0, i64 %1) {{
  br label %3

3:                                                ; preds = %6, %2
  %4 = phi i64 [ 0, %2 ], [ %9, %6 ]
  %5 = icmp slt i64 %4, %1
  br i1 %5, label %6, label %10

6:                                                ; preds = %3
  %7 = getelementptr float, ptr %0, i64 %4
  {body}
  %9 = add i64 %4, 8
  br label %3

10:                                               ; preds = %3
  ret void
}}
"""
NEST = """
define void @{name}(ptr noalias %0, i64 %1) {{
  br label %3

3:                                                ; preds = %12, %2
  %4 = phi i64 [ 0, %2 ], [ %13, %12 ]
  %5 = icmp slt i64 %4, %1
  br i1 %5, label %6, label %14

6:                                                ; preds = %3
  {around}
  br label %7

7:                                                ; preds = %10, %6
  %8 = phi i64 [ 0, %6 ], [ %11, %10 ]
  %9 = icmp slt i64 %8, %1
  br i1 %9, label %10, label %12

10:                                               ; preds = %7
  {inside}
  %11 = add i64 %8, 1
  br label %7

12:                                               ; preds = %7
  %13 = add i64 %4, 1
  br label %3

14:                                               ; preds = %3
  ret void
}}
"""
TWO = """
define void @{name}(ptr noalias %0, i64 %1) {{
  br label %3

3:                                                ; preds = %6, %2
  %4 = phi i64 [ 0, %2 ], [ %7, %6 ]
  %5 = icmp slt i64 %4, %1
  br i1 %5, label %6, label %8

6:                                                ; preds = %3
  {first}
  %7 = add i64 %4, 1
  br label %3

8:                                                ; preds = %11, %3
  %9 = phi i64 [ 0, %3 ], [ %12, %11 ]
  %10 = icmp slt i64 %9, %1
  br i1 %10, label %11, label %13

11:                                               ; preds = %8
  {second}
  %12 = add i64 %9, 1
  br label %8

13:                                               ; preds = %8
  ret void
}}
"""
SCALAR = "store float 1.0, ptr %0, align 4"
VECTOR = "store <8 x float> zeroinitializer, ptr %0, align 4"
CALL = "call void @vectors(ptr %0, i64 %1)"
INTRINSIC = "call void @llvm.prefetch.p0(ptr %0, i32 1, i32 3, i32 1)"
ENTRY = """
define void @{name}(ptr %0, i64 %1) {{
  call void @{callee}(ptr %0, i64 %1)
  ret void
}}
"""


def test_a_loop_is_vectorised_if_it_uses_vectors() -> None:
    module = LOOP.format(name="vectors", body=VECTOR) + LOOP.format(name="scalars", body=SCALAR)
    assert vectorised(module) == {"vectors"}


@pytest.mark.parametrize(
    ("around", "inside", "is_done"),
    [
        (SCALAR, VECTOR, True),
        (VECTOR, SCALAR, False),
        (SCALAR, CALL, True),
        (VECTOR, INTRINSIC, False),
    ],
    ids=["vectors inside", "scalars inside", "a call", "an instruction"],
)
def test_the_innermost_loop_decides(around: str, inside: str, is_done: bool) -> None:
    assert vectorised(NEST.format(name="nest", around=around, inside=inside)) == ({"nest"} if is_done else set())


@pytest.mark.parametrize("bodies", [(VECTOR, SCALAR), (SCALAR, VECTOR)])
def test_every_innermost_loop_decides(bodies: tuple[str, str]) -> None:
    assert vectorised(TWO.format(name="two", first=bodies[0], second=bodies[1])) == set()


def test_an_entry_counts_with_the_function_that_it_calls() -> None:
    bodies = LOOP.format(name="vectors", body=VECTOR) + LOOP.format(name="scalars", body=SCALAR)
    entries = ENTRY.format(name="first", callee="vectors") + ENTRY.format(name="second", callee="scalars")
    assert vectorised(bodies + entries) == {"vectors", "first"}


def test_blocks_with_names_are_left_to_the_pipeline() -> None:
    named = LOOP.format(name="vectors", body=VECTOR).replace("%3", "%loop").replace("\n3:", "\nloop:")
    assert vectorised(named) == set()


def product_and_map() -> Graph:
    b = Builder("both")
    x, y, z = (b.input("float32", (64, 64)) for _ in range(3))
    b.output(matmul(x, y), relu(z * 3).sum(1))
    return b.graph()


def test_a_module_of_both_is_optimised_by_both() -> None:
    made = compiled(product_and_map(), "cpu:x86-64-v3", texts=("translate",))
    module = made.dumps["translate"]
    done = vectorised(module)
    assert any(name.startswith("multiply") for name in done)
    assert "kernel_1" not in done
    optimised = object_code.optimised_ir(module, target("cpu:x86-64-v3"))
    assert "optnone" not in optimised
    (micro_kernel,) = re.findall(r"^define internal [^\n]*@multiply.*?^}$", optimised, re.MULTILINE | re.DOTALL)
    assert "<8 x float>" in micro_kernel
    (scalars,) = re.findall(r"^define void @kernel_1\(.*?^}$", optimised, re.MULTILINE | re.DOTALL)
    assert "<8 x float>" in scalars
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-3, 4, (64, 64)).astype(np.float32) for _ in range(3)]
    product, sums = checked.run(made, *arrays)
    np.testing.assert_array_equal(product, arrays[0] @ arrays[1])
    np.testing.assert_array_equal(sums, np.maximum(arrays[2] * 3, 0).sum(1))
