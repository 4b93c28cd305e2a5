"""The loops that are found in the text of a function."""

from __future__ import annotations

from passes.codegen.loop_blocks import loops

TEXT = """  br label %2

2:                                                ; preds = %9, %1
  %3 = phi i64 [ 0, %1 ], [ %10, %9 ]
  br label %4

4:                                                ; preds = %6, %2
  %5 = phi i64 [ 0, %2 ], [ %7, %6 ]
  br i1 true, label %6, label %9

6:                                                ; preds = %4
  %7 = add i64 %5, 1
  br label %4

9:                                                ; preds = %4
  %10 = add i64 %3, 1
  br i1 true, label %2, label %11

11:                                               ; preds = %13, %9
  %12 = phi i64 [ 0, %9 ], [ %14, %13 ]
  br i1 true, label %13, label %15

13:                                               ; preds = %11
  %14 = add i64 %12, 1
  br label %11

15:                                               ; preds = %11
  ret void
"""


def test_loops_have_a_header_and_an_end() -> None:
    found = [(TEXT[loop.start : loop.end].split(":")[0], TEXT[loop.header_end : loop.end]) for loop in loops(TEXT)]
    assert [header for header, _ in found] == ["11", "4", "2"]
    assert [behind.split(":")[0] for _, behind in found] == ["13", "6", "4"]
    assert found[1][1].endswith("br label %4\n\n")
    assert found[2][1].endswith("br i1 true, label %2, label %11\n\n")


def test_a_loop_around_another_is_not_innermost() -> None:
    assert [loop.is_innermost for loop in loops(TEXT)] == [True, True, False]


def test_blocks_that_are_not_printed_by_the_bindings_are_no_loops() -> None:
    assert not list(loops(TEXT.replace("; preds", "; from")))
