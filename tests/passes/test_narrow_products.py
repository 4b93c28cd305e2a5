"""Products of narrow integers: pairs or quads of them in one instruction, with the sums of any other order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passes.codegen.object_code import assembly
from passes.compile import CompileRequest
from tensorkiln.build import Builder, conv, pad
from tensorkiln.graph import Graph
from tensorkiln.target import Target
from tests import checked
from tests.compiled import compiled, runs_here, with_texts
from tests.filecheck import check_ir
from tests.numerics.cases.turns import EXAMPLES
from tests.passes.modules import decomposed, output

V3 = "cpu:x86-64-v3"
AMX = ("avx512vnni", "amx-tile", "amx-int8")


def product(left: str, right: str, rows: Any, depth: Any, columns: Any, *, transposed: bool = False) -> Graph:
    """The int32 product of two narrow operands, the right one perhaps given as columns by depth."""
    b = Builder()
    rows, depth = (b.symbol(each, 1, 400) if isinstance(each, str) else each for each in (rows, depth))
    x, y = b.input(left, (rows, depth)), b.input(right, (columns, depth) if transposed else (depth, columns))
    return output(b, x.cast("int32") @ (y.T if transposed else y).cast("int32"))


def drawn(seed: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """All values of the dtype, the extremes often."""
    limits, random = np.iinfo(dtype), np.random.default_rng(seed)
    values = random.integers(limits.min, limits.max, shape, endpoint=True)
    return np.where(random.random(shape) < 0.3, random.choice([limits.min, limits.max], shape), values).astype(dtype)


NARROW = ("int8", "uint8", "int16")


@settings(max_examples=20)
@given(
    st.sampled_from(NARROW),
    st.sampled_from(NARROW),
    st.tuples(st.integers(1, 40), st.integers(1, 300), st.integers(1, 70)),
    st.booleans(),
    st.booleans(),
)
def test_a_product_of_narrow_integers_is_numpys(
    left: str, right: str, sizes: tuple[int, int, int], transposed: bool, symbolic: bool
) -> None:
    rows, depth, columns = sizes
    extents = ("m", "k") if symbolic else (rows, depth)
    graph = product(left, right, *extents, columns, transposed=transposed)
    x = drawn(1, left, (rows, depth))
    y = drawn(2, right, (columns, depth) if transposed else (depth, columns))
    symbols = {"m": rows, "k": depth} if symbolic else {}
    (made,) = checked.run_graph(graph, x, y, **symbols)
    # Sums of int16 wrap around.
    expected = (x.astype(np.int64) @ (y.T if transposed else y).astype(np.int64)).astype(np.int32)
    np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize(
    ("target", "left", "right", "sizes"),
    [
        (name, *dtypes, sizes)
        for place, name in enumerate(("cpu:x86-64-v2", V3, "cpu:x86-64-v4", "cpu:native"))
        for turn, dtypes in enumerate((("int8", "uint8"), ("uint8", "int8"), ("uint8", "uint8")))
        for number, sizes in enumerate(((1, 9, 17), (37, 131, 67), (70, 530, 130)))
        # By turns, so that each of the sizes meets each target, and each two dtypes.
        if EXAMPLES > 1 or (place + turn + number) % 3 == 0
    ],
)
def test_products_of_bytes_are_numpys_on_every_target(
    left: str, right: str, sizes: tuple[int, int, int], target: str
) -> None:
    if not runs_here(target):
        pytest.skip(f"{target} does not run here")
    rows, depth, columns = sizes
    x, y = drawn(1, left, (rows, depth)), drawn(2, right, (depth, columns))
    (made,) = checked.ready(product(left, right, *sizes), target)(x, y)
    np.testing.assert_array_equal(made, (x.astype(np.int64) @ y.astype(np.int64)).astype(np.int32))


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_convolution_of_bytes_without_their_zero_point_is_exact(padding: int, groups: int) -> None:
    b = Builder()
    x, zero = b.input("uint8", (1, 6, 9, 9)), b.input("uint8", ())
    weights = b.input("int8", (8, 6 // groups, 3, 3))
    centred = x.cast("int32") - zero.cast("int32")
    graph = output(b, conv(centred, weights.cast("int32"), padding=padding, groups=groups))
    arrays = drawn(3, "uint8", (1, 6, 9, 9)), np.asarray(200, np.uint8), drawn(4, "int8", (8, 6 // groups, 3, 3))
    (made,) = checked.run_graph(graph, *arrays)
    padded = np.pad(arrays[0].astype(np.int64) - 200, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    windows = np.lib.stride_tricks.sliding_window_view(padded[0], (3, 3), (1, 2))
    per_group = [
        np.einsum("chwij,ocij->ohw", part, taps.astype(np.int64))
        for part, taps in zip(np.split(windows, groups), np.split(arrays[2], groups), strict=True)
    ]
    np.testing.assert_array_equal(made[0], np.concatenate(per_group))


@pytest.mark.parametrize(
    ("level", "more", "left", "instruction"),
    [
        ("x86-64-v2", (), "int8", "\tpmaddwd"),
        ("x86-64-v3", (), "int8", "vpmaddwd"),
        ("x86-64-v3", ("avxvnni",), "int8", "vpdpbusd"),
        ("x86-64-v3", ("avxvnni",), "uint8", "vpdpwssd"),
        ("x86-64-v4", (), "int8", "vpmaddwd"),
        ("x86-64-v4", ("avx512vnni",), "int8", "vpdpbusd"),
        ("x86-64-v4", ("avx512vnni",), "int16", "vpdpwssd"),
        ("x86-64-v4", AMX, "int8", "tdpbsud"),
        ("x86-64-v4", AMX, "uint8", "tdpbuud"),
    ],
)
def test_a_product_of_bytes_uses_the_instruction_of_its_target(
    level: str, more: tuple[str, ...], left: str, instruction: str
) -> None:
    known = Target.parse(level)
    target = known.model_copy(update={"features": tuple(sorted((*known.features, *more)))})
    made = with_texts(CompileRequest(product(left, "uint8", 64, 128, 64), target), "translate")
    assert instruction in assembly(made.dumps["translate"], target)


def test_tiles_of_bytes_are_multiplied_between_their_configuration_and_release() -> None:
    v4 = Target.parse("cpu:x86-64-v4")
    target = v4.model_copy(update={"features": tuple(sorted((*v4.features, *AMX)))})
    made = with_texts(CompileRequest(product("int8", "int8", 70, 150, 48), target), "realise")
    check_ir(
        made.dumps["realise"],
        """
        // CHECK-LABEL: func.func private @multiply_tiles_ss_to_int32_16x64
        // CHECK: call @llvm.x86.ldtilecfg
        // CHECK: scf.for
        // CHECK: scf.if
        // CHECK-COUNT-3: call @llvm.x86.tilezero
        // CHECK: else
        // CHECK-COUNT-3: call @llvm.x86.tileloadd64
        // CHECK: scf.for
        // CHECK: call @llvm.x86.tileloadd64
        // CHECK: call @llvm.x86.tileloadd64
        // CHECK: call @llvm.x86.tdpbssd
        // CHECK: call @llvm.x86.tilestored64
        // CHECK: call @llvm.x86.tilerelease
        """,
    )


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4", "native"])
@pytest.mark.parametrize(
    ("size", "stride"), [((13, 17), (2, 2)), ((9, 40), (1, 2)), ((8, 35), (2, 1)), ((9, 52), (3, 3))]
)
def test_strided_windows_of_bytes_are_numpys(size: tuple[int, int], stride: tuple[int, int], level: str) -> None:
    if not runs_here(f"cpu:{level}"):
        pytest.skip(f"cpu:{level} does not run here")
    b = Builder()
    x, weights = b.input("uint8", (2, 5, *size)), b.input("int8", (20, 5, 3, 3))
    graph = output(b, conv(x.cast("int32"), weights.cast("int32"), stride=stride))
    image, taps = drawn(5, "uint8", (2, 5, *size)), drawn(6, "int8", (20, 5, 3, 3))
    (made,) = checked.ready(graph, f"cpu:{level}")(image, taps)
    windows = np.lib.stride_tricks.sliding_window_view(image.astype(np.int64), (3, 3), (2, 3))
    windows = windows[:, :, :: stride[0], :: stride[1]]
    np.testing.assert_array_equal(made, np.einsum("bchwij,ocij->bohw", windows, taps.astype(np.int64)))


def test_a_target_without_the_instruction_multiplies_in_32_bits() -> None:
    made = compiled(product("int8", "int8", 64, 128, 64), "cpu:aarch64", texts=("realise",))
    assert "pmadd" not in made.dumps["realise"]


def test_wide_operands_are_multiplied_in_32_bits() -> None:
    made = compiled(product("int32", "int8", 64, 128, 64), V3, texts=("realise",))
    assert "pmadd" not in made.dumps["realise"]


def test_a_factor_is_widened_after_it_is_moved() -> None:
    b = Builder()
    x, zero, weights = b.input("uint8", (4, 6)), b.input("uint8", ()), b.input("int8", (8, 5))
    centred = pad(x.cast("int32") - zero.cast("int32"), [(0, 0), (1, 1)])
    check_ir(
        decomposed(output(b, centred @ weights.cast("int32"))),
        """
        // CHECK: %[[S:.*]] = "kiln.binop"({{.*}}) {op = "sub"} : (tensor<4x6xi16>, tensor<i16>) -> tensor<4x6xi16>
        // CHECK: %[[P:.*]] = "kiln.pad"(%[[S]]) {{.*}} -> tensor<4x8xi16>
        // CHECK: "kiln.expand"{{.*}} -> tensor<4x5x8xi16>
        // CHECK: "kiln.cast"{{.*}} (tensor<4x5x8xi16>) -> tensor<4x5x8xi32>
        """,
    )


def test_a_factor_of_a_sum_without_sign_stays_as_wide() -> None:
    b = Builder()
    x, zero, weights = b.input("uint8", (4, 6)), b.input("uint8", ()), b.input("uint8", (6, 5))
    check_ir(
        decomposed(output(b, (x.cast("uint32") - zero.cast("uint32")) @ weights.cast("uint32"))),
        """
        // CHECK: "kiln.binop"({{.*}}) {{.*}}op = "sub"{{.*}} -> tensor<4x6xui32>
        """,
    )


def test_a_difference_that_is_used_otherwise_stays_wide() -> None:
    b = Builder()
    x, zero = b.input("uint8", (4, 6)), b.input("uint8", ())
    centred = x.cast("int32") - zero.cast("int32")
    check_ir(
        decomposed(output(b, centred, centred @ b.input("int32", (6, 2)))),
        """
        // CHECK: "kiln.binop"({{.*}}) {{.*}}op = "sub"{{.*}} -> tensor<4x6xi32>
        """,
    )
