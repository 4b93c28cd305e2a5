"""What is not LLVM dialect is named with its place, and never reaches the translator."""

from __future__ import annotations

import pytest

from dialect.mlir import ir
from passes.codegen.translate import only_llvm, to_llvm_ir
from tensorkiln.errors import DiagnosticError

LLVM_FUNCTION = """
llvm.func @k(%p: !llvm.ptr) {
  %c = llvm.mlir.constant(0.1 : f32) : f32
  llvm.store %c, %p : f32, !llvm.ptr
  llvm.return
}
"""


def _parse(text: str) -> ir.Module:
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        return ir.Module.parse(text)


def test_a_module_of_the_llvm_dialect_passes_and_translates() -> None:
    text = to_llvm_ir(_parse(LLVM_FUNCTION))
    assert "store float 0x3FB99999A0000000, ptr %0" in text


def test_a_leftover_is_named_with_the_node_it_comes_from() -> None:
    text = 'func.func @k(%x: f32) -> f32 { %y = arith.addf %x, %x : f32 loc("/nodes/7")\n return %y : f32 }'
    with pytest.raises(DiagnosticError, match=r"arith\.addf at loc\(\"/nodes/7\"\)") as caught:
        only_llvm(_parse(text))
    assert caught.value.pointers == ("/nodes/7",)
    assert caught.value.details["operations"] == ["arith.addf", "func.func", "func.return"]


def test_every_node_of_a_fused_location_is_pointed_to() -> None:
    text = 'llvm.func @k() { "kiln.left"() : () -> () loc(fused["/nodes/1", "/nodes/4"])\n llvm.return }'
    with pytest.raises(DiagnosticError) as caught:
        to_llvm_ir(_parse(text))
    assert caught.value.pointers == ("/nodes/1", "/nodes/4")


def test_an_unregistered_operation_with_an_llvm_name_is_refused() -> None:
    with pytest.raises(DiagnosticError, match=r"llvm\.intr\.no\.such"):
        to_llvm_ir(_parse('llvm.func @k() { "llvm.intr.no.such"() : () -> ()\n llvm.return }'))


def test_a_cast_that_was_not_reconciled_is_refused() -> None:
    text = "llvm.func @k(%a: i64) { %0 = builtin.unrealized_conversion_cast %a : i64 to index\n llvm.return }"
    with pytest.raises(DiagnosticError, match="unrealized_conversion_cast"):
        to_llvm_ir(_parse(text))


def test_a_module_inside_the_module_is_refused() -> None:
    with pytest.raises(DiagnosticError, match=r"builtin\.module"):
        only_llvm(_parse("module { module { } }"))


def _strict(text: str) -> ir.Module:
    """As in a compile, whose context knows no operation that is not registered."""
    with ir.Context(), ir.Location.unknown():
        return ir.Module.parse(text)


@pytest.mark.parametrize(
    ("text", "leftover"),
    [
        ("llvm.func @k() { %c = arith.constant 1 : i32\n llvm.return }", "arith.constant"),
        ("module { module { } }", "builtin.module"),
        ("llvm.func @k() { builtin.module { }\n llvm.return }", "builtin.module"),
    ],
)
def test_a_leftover_is_named_where_mlir_looks_first(text: str, leftover: str) -> None:
    only_llvm(_strict(LLVM_FUNCTION))
    with pytest.raises(DiagnosticError, match="were not lowered to LLVM") as caught:
        only_llvm(_strict(text))
    assert caught.value.details["operations"] == [leftover]
