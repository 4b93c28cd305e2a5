"""Attributes land where LLVM's grammar takes them, whatever stands around the parameter list."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from passes.codegen.function_attributes import attach

GROUPED = """
define dso_local i32 @f(ptr noalias align 64 dereferenceable(4) captures(none) %0, i32 %1) #0 {
  ret i32 %1
}
attributes #0 = { nounwind "k"="own" }
"""
DEFINITIONS = [
    "define void @f() {\n  ret void\n}",
    GROUPED,
    'define void @"a(b"(i64 %0) local_unnamed_addr section ".text.k" align 64 {\n  ret void\n}',
    "define { float, i32 } @f(<4 x i1> %0) unnamed_addr nounwind {\n  ret { float, i32 } zeroinitializer\n}",
    "define internal void @f(ptr byval({ i32, float }) %0) alignstack(16) {\n  ret void\n}",
]


@pytest.mark.parametrize("text", DEFINITIONS)
def test_a_definition_gets_the_attributes(text: str) -> None:
    module = llvm.parse_assembly(attach(text, {"tune-cpu": "znver4", "prefer-vector-width": "512"}))
    module.verify()
    printed = str(module)
    assert '"tune-cpu"="znver4"' in printed
    assert '"prefer-vector-width"="512"' in printed


def test_a_function_keeps_what_it_says_itself() -> None:
    module = llvm.parse_assembly(attach(GROUPED, {"k": "default"}))
    assert '"k"="own"' in str(module)
    assert '"k"="default"' not in str(module)


def test_a_declaration_stays_as_it_is() -> None:
    text = "declare void @g(ptr)"
    assert attach(text, {"a": "b"}) == text
