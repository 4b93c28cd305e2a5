"""Functions whose loops are in vectors are optimised by few passes, the others by LLVM's pipeline."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import numpy as np
import pytest

from passes.codegen import object_code
from passes.codegen.vectorised import vectorised
from tensorkiln.build import Builder, matmul, relu
from tensorkiln.graph import Graph
from tests import checked
from tests.compiled import compiled, target

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


def loop(header: int, before: int, body: str, latch: int | None = None) -> str:
    """The blocks of a loop as the bindings print them: the header, the body, and the start of the block behind.

    The body begins at block `header + 3`. It ends at the block `latch`, by default the same; `before` jumps in.
    """
    latch = header + 3 if latch is None else latch
    after = latch + 2
    return f"""
{header}:                                                ; preds = %{latch}, %{before}
  %{header + 1} = phi i64 [ 0, %{before} ], [ %{latch + 1}, %{latch} ]
  %{header + 2} = icmp slt i64 %{header + 1}, %1
  br i1 %{header + 2}, label %{header + 3}, label %{after}

{header + 3}:                                                ; preds = %{header}
  {body}
  %{latch + 1} = add i64 %{header + 1}, 1
  br label %{header}

{after}:                                                ; preds = %{header}
"""


def function(name: str, blocks: str) -> str:
    return f"define void @{name}(ptr noalias %0, i64 %1) {{\n  br label %3\n{blocks}  ret void\n}}\n"


LOOPS = function("vectors", loop(3, 2, VECTOR)) + function("scalars", loop(3, 2, SCALAR))
DECLARED = """
declare void @vectors(ptr, i64)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
"""


def test_a_loop_is_vectorised_if_it_uses_vectors() -> None:
    assert vectorised(LOOPS) == {"vectors"}


@pytest.mark.parametrize(
    ("around", "inside", "is_done"),
    [
        (SCALAR, VECTOR, True),
        (VECTOR, SCALAR, False),
        (SCALAR, CALL, True),
        (SCALAR, INTRINSIC, True),
    ],
    ids=["vectors inside", "scalars inside", "a call", "prefetches inside"],
)
def test_the_innermost_loop_decides(around: str, inside: str, is_done: bool) -> None:
    body = f"{around}\n  br label %7\n{loop(7, 6, inside)}"
    nest = function("nest", loop(3, 2, body, latch=12))
    llvm.parse_assembly(nest + DECLARED)
    assert vectorised(nest) == ({"nest"} if is_done else set())


@pytest.mark.parametrize("bodies", [(VECTOR, SCALAR), (SCALAR, VECTOR)])
def test_every_innermost_loop_decides(bodies: tuple[str, str]) -> None:
    first, second = bodies
    two = function("two", loop(3, 2, first) + "  br label %9\n" + loop(9, 8, second))
    llvm.parse_assembly(two)
    assert vectorised(two) == set()


def test_an_entry_counts_with_the_function_that_it_calls() -> None:
    entries = ENTRY.format(name="first", callee="vectors") + ENTRY.format(name="second", callee="scalars")
    assert vectorised(LOOPS + entries) == {"vectors", "first"}


def test_blocks_with_names_are_left_to_the_pipeline() -> None:
    named = function("vectors", loop(3, 2, VECTOR)).replace("%3", "%loop").replace("\n3:", "\nloop:")
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
