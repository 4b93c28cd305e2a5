"""Operations element by element, for every dtype, against the interpreter of StableHLO."""

from __future__ import annotations

import numpy as np
import pytest

from tensorkiln.dtypes import DType

from .modules import FLOATS, INTEGERS, SIGNED, binary, module, unary
from .oracle import agree, arguments, computed

FLOAT_UNARY = (
    *("abs", "cbrt", "ceil", "cosine", "exponential", "exponential_minus_one", "floor", "log", "log_plus_one"),
    *("logistic", "negate", "round_nearest_afz", "round_nearest_even", "rsqrt", "sign", "sine", "sqrt", "tan", "tanh"),
)
FLOAT_BINARY = ("add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder", "subtract")
INTEGER_UNARY = ("count_leading_zeros", "negate", "not", "popcnt")
INTEGER_BINARY = (
    *("add", "and", "divide", "maximum", "minimum", "multiply", "or", "remainder", "subtract", "xor"),
    *("shift_left", "shift_right_arithmetic", "shift_right_logical"),
)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("name", FLOAT_UNARY)
def test_a_function_of_floats(name: str, kind: str) -> None:
    text = unary(name, kind)
    (x,) = arguments(text)
    if name in ("log", "rsqrt", "sqrt"):
        x = np.abs(x)
    agree(text, [x], steps=16.0)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("name", FLOAT_BINARY)
def test_arithmetic_of_floats(name: str, kind: str) -> None:
    text = binary(name, kind)
    left, right = arguments(text)
    if name == "power":
        left = np.abs(left)
    agree(text, [left, right], steps=16.0)


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("name", INTEGER_UNARY)
def test_bits_of_integers(name: str, kind: str) -> None:
    text = unary(name, kind)
    agree(text, arguments(text))


@pytest.mark.parametrize("kind", SIGNED)
@pytest.mark.parametrize("name", ["abs", "sign"])
def test_signs_of_integers(name: str, kind: str) -> None:
    text = unary(name, kind)
    agree(text, arguments(text))


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("name", INTEGER_BINARY)
def test_arithmetic_of_integers(name: str, kind: str) -> None:
    text = binary(name, kind)
    left, right = arguments(text)
    if name in ("divide", "remainder"):
        right = np.where(right == 0, np.ones_like(right), right)
    if name.startswith("shift"):
        right = np.abs(right)
    agree(text, [left, right])


@pytest.mark.parametrize("kind", SIGNED)
def test_a_power_of_integers(kind: str) -> None:
    text = binary("power", kind)
    left, right = arguments(text)
    agree(text, [left, np.abs(right) % 5])


@pytest.mark.parametrize("name", ["and", "or", "xor", "add", "maximum", "minimum", "multiply"])
def test_arithmetic_of_bools(name: str) -> None:
    text = binary(name, "i1")
    agree(text, arguments(text))


@pytest.mark.parametrize("kind", [*INTEGERS])
def test_an_integer_divided_by_zero_is_what_xla_says(kind: str) -> None:
    text = binary("divide", kind)
    left, right = arguments(text)
    (found,) = computed(text, [left, np.zeros_like(right)])
    assert np.array_equal(found, np.full_like(left, -1 if kind.startswith("i") else DType.from_numpy(left.dtype).max))


@pytest.mark.parametrize("kind", ["i8", "i32", "ui32"])
@pytest.mark.parametrize("name", ["shift_left", "shift_right_arithmetic", "shift_right_logical"])
def test_a_shift_by_more_than_the_width(name: str, kind: str) -> None:
    text = binary(name, kind)
    left, right = arguments(text)
    agree(text, [left, right + np.asarray(64, right.dtype)])


@pytest.mark.parametrize("kind", ["f32", "f64", "i32", "ui8", "i1"])
@pytest.mark.parametrize("direction", ["EQ", "NE", "LT", "LE", "GT", "GE"])
def test_a_comparison(direction: str, kind: str) -> None:
    body = f"%r0 = stablehlo.compare {direction}, %a0, %a1 : (tensor<40x{kind}>, tensor<40x{kind}>) -> tensor<40xi1>"
    text = module([f"40x{kind}"] * 2, body, "40xi1")
    left, right = arguments(text)
    if kind.startswith("f"):
        left[:3], right[2:5] = [np.nan, np.inf, 0.0], np.nan
    agree(text, [left, right])


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("direction", ["LT", "GE", "EQ"])
def test_a_comparison_in_the_total_order(direction: str, kind: str) -> None:
    special = np.array([-np.nan, -np.inf, -1.5, -0.0, 0.0, 1.5, np.inf, np.nan])
    left, right = (each.reshape(-1) for each in np.meshgrid(special, special))
    kinds = f"tensor<64x{kind}>"
    body = f"%r0 = stablehlo.compare {direction}, %a0, %a1, TOTALORDER : ({kinds}, {kinds}) -> tensor<64xi1>"
    text = module([f"64x{kind}"] * 2, body, "64xi1")
    dtype = arguments(text)[0].dtype
    places = np.arange(64)
    same, before = places // 8 == places % 8, places % 8 < places // 8
    (found,) = computed(text, [left.astype(dtype), right.astype(dtype)])
    expected = {"EQ": same, "LT": before, "GE": ~before}[direction]
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("kind", FLOATS)
def test_is_finite(kind: str) -> None:
    text = module([f"4x{kind}"], f"%r0 = stablehlo.is_finite %a0 : (tensor<4x{kind}>) -> tensor<4xi1>", "4xi1")
    dtype = arguments(text)[0].dtype
    agree(text, [np.array([np.nan, np.inf, -np.inf, 3.0]).astype(dtype)])


@pytest.mark.parametrize("kind", ["f32", "i32", "bf16"])
def test_a_clamp_and_a_choice(kind: str) -> None:
    body = f"""
    %0 = stablehlo.clamp %a0, %a1, %a2 : (tensor<{kind}>, tensor<3x4x{kind}>, tensor<{kind}>) -> tensor<3x4x{kind}>
    %r0 = stablehlo.clamp %0, %a1, %0 : tensor<3x4x{kind}>
    %r1 = stablehlo.select %a3, %0, %a1 : tensor<3x4xi1>, tensor<3x4x{kind}>
    %r2 = stablehlo.select %a4, %0, %a1 : tensor<i1>, tensor<3x4x{kind}>"""
    text = module([kind, f"3x4x{kind}", kind, "3x4xi1", "i1"], body, *[f"3x4x{kind}"] * 3)
    low, x, _, *rest = arguments(text)
    agree(text, [np.minimum(low, np.asarray(-1, low.dtype)), x, np.asarray(1, low.dtype), *rest])


@pytest.mark.parametrize("target", [*FLOATS, *INTEGERS, "i1"])
@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS, "i1"])
def test_a_conversion(source: str, target: str) -> None:
    body = f"%r0 = stablehlo.convert %a0 : (tensor<40x{source}>) -> tensor<40x{target}>"
    text = module([f"40x{source}"], body, f"40x{target}")
    (x,) = arguments(text)
    agree(text, [np.abs(x) if target.startswith("u") else x])


def test_a_float_outside_of_an_integer_type_becomes_the_nearest_of_it() -> None:
    for kind, low, high in [("i8", -128, 127), ("ui8", 0, 255), ("ui32", 0, 2**32 - 1), ("i64", -(2**63), 2**63 - 1)]:
        text = module(["4xf32"], f"%r0 = stablehlo.convert %a0 : (tensor<4xf32>) -> tensor<4x{kind}>", f"4x{kind}")
        (found,) = computed(text, [np.array([-1e30, 1e30, np.nan, np.inf], np.float32)])
        assert found.tolist() == [low, high, 0, high]


@pytest.mark.parametrize(("source", "target"), [("f32", "i32"), ("i16", "bf16"), ("ui64", "f64"), ("i8", "ui8")])
def test_bits_read_as_another_type_of_the_width(source: str, target: str) -> None:
    body = f"%r0 = stablehlo.bitcast_convert %a0 : (tensor<2x3x{source}>) -> tensor<2x3x{target}>"
    text = module([f"2x3x{source}"], body, f"2x3x{target}")
    agree(text, [np.abs(each) for each in arguments(text)])


def test_bits_read_as_a_type_of_another_width() -> None:
    body = """
    %0 = stablehlo.bitcast_convert %a0 : (tensor<2x3xf32>) -> tensor<2x3x2xi16>
    %r1 = stablehlo.bitcast_convert %0 : (tensor<2x3x2xi16>) -> tensor<2x3xui32>
    %r0 = stablehlo.negate %0 : tensor<2x3x2xi16>"""
    text = module(["2x3xf32"], body, "2x3x2xi16", "2x3xui32")
    agree(text, arguments(text))


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize(("exponent", "mantissa"), [(8, 7), (5, 10), (4, 3), (5, 2), (11, 52), (2, 1)])
def test_a_reduced_precision(kind: str, exponent: int, mantissa: int) -> None:
    line = f"%r0 = stablehlo.reduce_precision %a0, format = e{exponent}m{mantissa} : tensor<44x{kind}>"
    text = module([f"44x{kind}"], line, f"44x{kind}")
    (x,) = arguments(text)
    draws = np.random.default_rng(1)
    wide = np.concatenate(
        [draws.normal(size=30) * 10.0 ** draws.integers(-4, 4, 30), np.zeros(10), [np.inf, -np.inf, -0.0, np.nan]]
    )
    agree(text, [wide.astype(x.dtype)])


def test_a_map_runs_its_region_on_every_element() -> None:
    body = """
    %r0 = "stablehlo.map"(%a0, %a1) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %0 = stablehlo.multiply %x, %y : tensor<f32>
      %c = stablehlo.constant dense<2.0> : tensor<f32>
      %1 = stablehlo.add %0, %c : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>"""
    text = module(["2x3xf32"] * 2, body, "2x3xf32")
    agree(text, arguments(text))


@pytest.mark.parametrize("kind", ["f32", "i32", "ui8", "bf16"])
def test_a_clamp_whose_bounds_are_the_wrong_way_round_is_the_upper_one(kind: str) -> None:
    dot = "" if "i" in kind else ".0"
    body = f"""
    %low = stablehlo.constant dense<5{dot}> : tensor<{kind}>
    %high = stablehlo.constant dense<2{dot}> : tensor<{kind}>
    %x = stablehlo.constant dense<[1{dot}, 3{dot}, 7{dot}]> : tensor<3x{kind}>
    %r0 = stablehlo.clamp %a0, %a1, %a2 : (tensor<{kind}>, tensor<3x{kind}>, tensor<{kind}>) -> tensor<3x{kind}>
    %r1 = stablehlo.clamp %low, %x, %high : (tensor<{kind}>, tensor<3x{kind}>, tensor<{kind}>) -> tensor<3x{kind}>"""
    text = module([kind, f"3x{kind}", kind], body, *[f"3x{kind}"] * 2)
    low, x, high = arguments(text)
    given = [np.full_like(low, 5), np.array([1, 3, 7], x.dtype), np.full_like(high, 2)]
    agree(text, given)
    assert [each.tolist() for each in computed(text, given)] == [[2, 2, 2]] * 2
