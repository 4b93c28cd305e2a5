"""Bodies of kernels that differ in sizes alone."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import numpy as np
import pytest

from passes.codegen.share_bodies import share_bodies
from passes.compile import Compilation
from tensorkiln.build import Builder, exp
from tests import checked
from tests.compiled import compiled

HEAD = """attributes #1 = { alwaysinline }

"""
BODY = """define internal void @{name}(ptr noalias %0, i64 %1) #1 {{
  br label %3

3:
  %4 = phi i64 [ {first}, %2 ], [ %9, %6 ]
  %5 = icmp slt i64 %4, {bound}
  br i1 %5, label %6, label %10

6:
  %7 = mul nuw nsw i64 %4, {stride}
  %8 = getelementptr {element}, ptr %0, i64 %7
  store i8 {stored}, ptr %8, align 1
  %9 = add i64 %4, {step}
  br label %3

10:
  %11 = udiv i64 %1, {divisor}
  call void @{callee}(ptr %0, i64 {argument}, i64 %11)
  ret void
}}

define void @entry_{name}(ptr %0, i64 %1) {{
  call void @{name}(ptr %0, i64 %1)
  ret void
}}

declare void @next_{name}(ptr, i64, i64)
declare void @next(ptr, i64, i64)

"""
NEST = """define internal void @{name}(ptr noalias %0, i64 %1) #1 {{
  br label %3

3:                                                ; preds = %14, %2
  %4 = phi i64 [ 0, %2 ], [ %15, %14 ]
  %5 = icmp slt i64 %4, {outer}
  br i1 %5, label %6, label %16

6:                                                ; preds = %3
  br label %7

7:                                                ; preds = %10, %6
  %8 = phi i64 [ 0, %6 ], [ %13, %10 ]
  %9 = icmp slt i64 %8, {inner}
  br i1 %9, label %10, label %14

10:                                               ; preds = %7
  %11 = add i64 %4, %8
  %12 = getelementptr float, ptr %0, i64 %11
  store i8 1, ptr %12, align 1
  %13 = add i64 %8, 1
  br label %7

14:                                               ; preds = %7
  %15 = add i64 %4, 1
  br label %3

16:                                               ; preds = %3
  ret void
}}

define void @entry_{name}(ptr %0, i64 %1) {{
  call void @{name}(ptr %0, i64 %1)
  ret void
}}

"""
GIVEN = {
    "first": "0", "bound": "100", "stride": "16", "element": "float", "stored": "1", "step": "1", "divisor": "7",
    "callee": "next", "argument": "5",
}  # fmt: skip


def module(*bodies: dict[str, str]) -> str:
    text = "".join(BODY.format_map(GIVEN | {"name": f"b{number}"} | body) for number, body in enumerate(bodies))
    first, *others = text.split("declare void @next(ptr, i64, i64)\n")
    return HEAD + first + "declare void @next(ptr, i64, i64)\n" + "".join(others)


def shared(*bodies: dict[str, str]) -> str:
    text = share_bodies(module(*bodies))
    llvm.parse_assembly(text).verify()
    return text


def calls(text: str) -> list[str]:
    """What the entries call, in order."""
    return re.findall(r"call void (@(?:b\d|shared_body_\d)\(.*\))", text)


def test_sizes_that_differ_are_arguments_each_once() -> None:
    text = shared({"bound": "100", "stride": "16"}, {"bound": "200", "stride": "16"}, {"bound": "300", "stride": "-8"})
    assert calls(text) == [
        "@shared_body_0(ptr %0, i64 %1, i64 100, i64 16)",
        "@shared_body_0(ptr %0, i64 %1, i64 200, i64 16)",
        "@shared_body_0(ptr %0, i64 %1, i64 300, i64 -8)",
    ]
    assert text.count("define internal") == 1
    assert "(ptr noalias %0, i64 %1, i64 %size.0, i64 %size.1) noinline {" in text
    assert "%5 = icmp slt i64 %4, %size.0" in text
    assert "%7 = mul nuw nsw i64 %4, %size.1" in text
    assert "add i64 %4, 1" in text
    again = shared({"bound": "100", "argument": "100"}, {"bound": "200", "argument": "200"})
    assert calls(again)[1] == "@shared_body_0(ptr %0, i64 %1, i64 200)"


def test_bodies_that_are_alike_in_all_need_no_argument() -> None:
    assert calls(shared({}, {})) == ["@shared_body_0(ptr %0, i64 %1)"] * 2


@pytest.mark.parametrize(
    "other",
    [
        {"divisor": "8"},
        {"bound": "63"},
        {"element": "double"},
        {"stored": "2"},
        {"callee": "next_b1"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_constants_other_than_sizes_keep_bodies_apart(other: dict[str, str]) -> None:
    text = module({}, other)
    assert share_bodies(text) == text


def nests(*bounds: tuple[int, int]) -> str:
    pairs = enumerate(bounds)
    text = HEAD + "".join(NEST.format(name=f"b{number}", outer=outer, inner=inner) for number, (outer, inner) in pairs)
    llvm.parse_assembly(text).verify()
    return text


def test_the_short_bound_of_an_outer_loop_is_a_size() -> None:
    text = share_bodies(nests((4, 16), (8, 16)))
    llvm.parse_assembly(text).verify()
    assert calls(text) == ["@shared_body_0(ptr %0, i64 %1, i64 4)", "@shared_body_0(ptr %0, i64 %1, i64 8)"]
    assert "%9 = icmp slt i64 %8, 16" in text


def test_the_short_bound_of_an_innermost_loop_keeps_bodies_apart() -> None:
    text = nests((4, 16), (4, 32))
    assert share_bodies(text) == text


def test_the_short_bound_of_an_innermost_loop_in_vectors_is_a_size() -> None:
    text = share_bodies(nests((4, 16), (4, 32)).replace("store i8 1", "store <4 x i8> splat (i8 1)"))
    llvm.parse_assembly(text).verify()
    assert calls(text) == ["@shared_body_0(ptr %0, i64 %1, i64 16)", "@shared_body_0(ptr %0, i64 %1, i64 32)"]


def test_other_functions_are_left_alone() -> None:
    text = module({}, {"stride": "32"}).replace("alwaysinline", "noinline")
    assert share_bodies(text) == text


def repeated(extents: tuple[int, ...]) -> Compilation:
    """For each extent two layers of a sum of exponentials: along a fixed dimension and a symbolic one."""
    b = Builder("repeated")
    n = b.symbol("n", 1, 200)
    for extent in extents:
        b.output(exp(b.input("float32", (70, extent))).sum(1), exp(b.input("float32", (n, extent))).sum(0))
    return compiled(b.graph(), texts=["translate"])


def test_kernels_of_shared_bodies_compute_each_their_own() -> None:
    extents = (80, 96, 131)
    compilation = repeated(extents)
    assert compilation.dumps["translate"].count("call void @shared_body_") >= 4
    rng = np.random.default_rng(5)
    arrays = [rng.standard_normal((rows, extent)).astype(np.float32) for extent in extents for rows in (70, 133)]
    results = checked.run(compilation, *arrays, threads=2, n=133)
    for number, (array, result) in enumerate(zip(arrays, results, strict=True)):
        np.testing.assert_allclose(result, np.exp(array, dtype=np.float64).sum(1 - number % 2), rtol=1e-5)
