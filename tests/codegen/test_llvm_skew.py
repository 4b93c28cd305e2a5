"""Every float literal that the bindings' LLVM prints reaches llvmlite's LLVM with the same bits."""

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dialect.mlir import ir
from dialect.mlir import llvm as llvm_dialect
from passes.codegen.float_bits import FORMATS, from_decimal, hexadecimal
from passes.codegen.llvm_skew import downgrade
from passes.codegen.llvm_targets import initialize
from tensorkiln.errors import DiagnosticError

EDGES_32 = [
    *(0, 0x80000000, 1, 0x007FFFFF, 0x00800000, 0x3DCCCCCD, 0x7F7FFFFF, 0x7F800000, 0xFF800000),
    *(0x7FC00000, 0xFFC00000, 0x7FC00001, 0x7F800001, 0xFFA00001, 0x7FFFFFFF, 0x3F000000, 0x4B000001),
]
EDGES_64 = [
    *(0, 1 << 63, 1, 0x000FFFFFFFFFFFFF, 0x3FB999999999999A, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000),
    *(0xFFF0000000000000, 0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001, 0xFFF4000000000002),
]


def _constants(patterns: NDArray[np.unsignedinteger], mlir_type: str) -> str:
    """LLVM 24's text of functions that return each pattern as a constant of the type."""
    bits = patterns.dtype.itemsize * 8
    digits = bits // 4
    functions = [
        f"llvm.func @f{index}() -> {mlir_type} {{ %c = llvm.mlir.constant(0x{int(pattern):0{digits}X} : {mlir_type})"
        f" : {mlir_type}\n llvm.return %c : {mlir_type} }}"
        for index, pattern in enumerate(patterns)
    ]
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse("\n".join(functions))
        return str(llvm_dialect.translate_module_to_llvmir(module.operation))


def _table(patterns: NDArray[np.unsignedinteger], mlir_type: str) -> str:
    """LLVM 24's text of one global table that holds all patterns."""
    attribute = f'dense<"0x{patterns.tobytes().hex()}"> : tensor<{patterns.size}x{mlir_type}>'
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(
            f"llvm.mlir.global constant @table({attribute}) : !llvm.array<{patterns.size} x {mlir_type}>"
        )
        return str(llvm_dialect.translate_module_to_llvmir(module.operation))


def _load(text: str) -> llvm.ExecutionEngine:
    initialize()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    return engine


def _stored(text: str, dtype: np.dtype[np.unsignedinteger], count: int) -> NDArray[np.unsignedinteger]:
    """The bytes of @table after llvmlite has read the text and made code of it."""
    engine = _load(text)
    size = dtype.itemsize * count
    return np.frombuffer(ctypes.string_at(engine.get_global_value_address("table"), size), dtype).copy()


@pytest.mark.parametrize("mlir_type", ["f16", "bf16"])
def test_all_patterns_of_a_16_bit_type_survive_in_a_table(mlir_type: str) -> None:
    patterns = np.arange(1 << 16, dtype=np.uint16)
    stored = _stored(downgrade(_table(patterns, mlir_type)), patterns.dtype, patterns.size)
    np.testing.assert_array_equal(stored, patterns)


@pytest.mark.parametrize(("mlir_type", "dtype", "edges"), [("f32", "u4", EDGES_32), ("f64", "u8", EDGES_64)])
def test_edges_and_random_patterns_of_a_wide_type_survive_in_a_table(
    mlir_type: str, dtype: str, edges: list[int]
) -> None:
    rng = np.random.default_rng(7)
    noise = rng.integers(0, np.iinfo(dtype).max, 20_000, dtype=dtype, endpoint=True)
    decimal = rng.normal(size=2000).astype("f4" if dtype == "u4" else "f8").view(dtype)
    patterns = np.concatenate([np.array(edges, dtype), noise, decimal])
    stored = _stored(downgrade(_table(patterns, mlir_type)), patterns.dtype, patterns.size)
    np.testing.assert_array_equal(stored, patterns)


@pytest.mark.parametrize(
    ("mlir_type", "prefix", "patterns"),
    [
        ("f16", "half 0xH", np.array([0x2E66, 0x7C00, 0xFC00, 0x7E00, 0x7C01, 0xFE01, 1, 0x8000, 0x7BFF], np.uint16)),
        ("bf16", "bfloat 0xR", np.array([0x3DCD, 0x7F80, 0xFF80, 0x7FC0, 0x7F81, 0xFFC1, 1, 0x8000], np.uint16)),
        ("f32", "float 0x", np.array(EDGES_32, np.uint32)),
        ("f64", "double 0x", np.array(EDGES_64, np.uint64)),
    ],
)
def test_an_instruction_operand_is_spelled_in_hexadecimal_of_its_own_type(
    mlir_type: str, prefix: str, patterns: NDArray[np.unsignedinteger]
) -> None:
    text = downgrade(_constants(patterns, mlir_type))
    returns = [line.strip() for line in text.split("\n") if line.strip().startswith("ret ")]
    assert len(returns) == patterns.size
    assert all(line.startswith(f"ret {prefix}") for line in returns)
    llvm.parse_assembly(text)


def test_the_type_of_a_literal_is_the_nearest_one_before_it() -> None:
    line = "  %3 = select i1 %2, half f0x3C00, half %1\n  store <2 x bfloat> <bfloat f0x3F80, bfloat -inf>, ptr %p"
    assert downgrade(line) == (
        "  %3 = select i1 %2, half 0xH3C00, half %1\n  store <2 x bfloat> <bfloat 0xR3F80, bfloat 0xRFF80>, ptr %p"
    )


def test_operands_after_the_first_and_splats_are_rewritten() -> None:
    line = "  %3 = fadd <4 x half> splat (half f0x2E66), %1\n  %4 = fmul float %2, +qnan\n  %5 = fadd float 0.1, -inf"
    assert downgrade(line) == (
        "  %3 = fadd <4 x half> splat (half 0xH2E66), %1\n  %4 = fmul float %2, 0x7FF8000000000000\n"
        "  %5 = fadd float 0x3FB99999A0000000, 0xFFF0000000000000"
    )


def test_names_strings_comments_and_versions_that_look_like_literals_stay() -> None:
    text = (
        '; float 0.1\nsource_filename = "float 0.1 +inf"\n@float.0.1 = constant [4 x i8] c"0.1 f0x3C00"\n'
        'define float @f(float %0.1) "x"="1.5" { ; preds = %float0.1\n  ret float %0.1\n}\n!0 = !{!"clang 22.0.1"}'
    )
    assert downgrade(text) == text


def test_memory_effects_on_target_memory_are_dropped() -> None:
    text = "attributes #0 = { nounwind memory(none, target_mem0: read) willreturn }"
    assert downgrade(text) == "attributes #0 = { nounwind willreturn }"


def test_other_memory_effects_stay() -> None:
    text = "attributes #0 = { nounwind memory(argmem: readwrite) }"
    assert downgrade(text) == text


def test_a_literal_of_an_unsupported_type_is_refused() -> None:
    with pytest.raises(DiagnosticError, match="fp128"):
        downgrade("  ret fp128 f0x3FFF0000000000000000000000000000")


INTRINSICS = """
llvm.func @k(%p: !llvm.ptr {llvm.noalias, llvm.nocapture, llvm.readonly, llvm.align = 64 : i64, llvm.nonnull},
             %m: vector<8xi1>, %v: vector<8xf32>, %ps: vector<8x!llvm.ptr>, %f: f32, %n: i64, %i: i32)
    attributes {passthrough = ["nounwind", ["prefer-vector-width", "512"]],
                memory_effects = #llvm.memory_effects<other = none, argMem = readwrite, inaccessibleMem = none,
                                                      errnoMem = none, targetMem0 = none, targetMem1 = read>} {
  %0 = llvm.intr.masked.load %p, %m, %v {alignment = 4 : i32}
      : (!llvm.ptr, vector<8xi1>, vector<8xf32>) -> vector<8xf32>
  llvm.intr.masked.store %0, %p, %m {alignment = 4 : i32} : vector<8xf32>, vector<8xi1> into !llvm.ptr
  %1 = llvm.intr.masked.gather %ps, %m, %v {alignment = 4 : i32}
      : (vector<8x!llvm.ptr>, vector<8xi1>, vector<8xf32>) -> vector<8xf32>
  llvm.intr.masked.scatter %1, %ps, %m {alignment = 4 : i32} : vector<8xf32>, vector<8xi1> into vector<8x!llvm.ptr>
  %2 = "llvm.intr.vector.reduce.fadd"(%f, %1) <{fastmathFlags = #llvm.fastmath<reassoc>}> : (f32, vector<8xf32>) -> f32
  %3 = "llvm.intr.vector.reduce.fmaximum"(%1) : (vector<8xf32>) -> f32
  %4 = llvm.intr.fma(%2, %3, %f) : (f32, f32, f32) -> f32
  "llvm.intr.memcpy"(%p, %p, %n) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
  "llvm.intr.prefetch"(%p) <{cache = 1 : i32, hint = 3 : i32, rw = 0 : i32}> : (!llvm.ptr) -> ()
  %5 = llvm.getelementptr inbounds|nuw %p[%n] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.store %4, %5 {alignment = 4 : i64} : f32, !llvm.ptr
  %6 = llvm.add %i, %i overflow<nsw, nuw> : i32
  %7 = llvm.zext nneg %6 : i32 to i64
  %8 = llvm.or disjoint %7, %n : i64
  %9 = llvm.alloca %i x f32 {alignment = 64 : i64} : (i32) -> !llvm.ptr
  llvm.intr.lifetime.start %9 : !llvm.ptr
  llvm.intr.lifetime.end %9 : !llvm.ptr
  llvm.return
}
"""


def test_masked_accesses_attributes_and_flags_are_read_by_the_older_llvm() -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(INTRINSICS)
        text = str(llvm_dialect.translate_module_to_llvmir(module.operation))
    assert "target_mem" in text
    llvm.parse_assembly(downgrade(text)).verify()


@given(st.floats(width=32, allow_nan=False))
@settings(max_examples=300, deadline=None)
def test_a_shortest_decimal_reads_back_as_the_float_it_was_printed_from(value: float) -> None:
    text = np.format_float_scientific(np.float32(value), unique=True) if np.isfinite(value) else "1e39"
    expected = np.float32(value if np.isfinite(value) else np.inf).view(np.uint32)
    assert from_decimal(text, FORMATS["float"]) == int(expected)


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=300, deadline=None)
def test_a_double_keeps_its_bits(value: float) -> None:
    assert from_decimal(repr(value), FORMATS["double"]) == int(np.float64(value).view(np.uint64))


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=300, deadline=None)
def test_a_decimal_is_rounded_once_to_half(value: float) -> None:
    with np.errstate(over="ignore"):
        expected = int(np.float64(value).astype(np.float16).view(np.uint16))
    assert from_decimal(repr(value), FORMATS["half"]) == expected


def test_a_denormal_float_is_a_normal_double_in_the_literal() -> None:
    assert hexadecimal(1, "float") == "0x36A0000000000000"
