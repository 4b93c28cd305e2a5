"""Complex numbers, as pairs, against the interpreter of StableHLO, which has them as numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest

from stablehlo.translate import translate
from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate

from .modules import module
from .oracle import Array, agree, arguments, computed, interpreted

KINDS = ("f32", "f64")
UNARY = (
    *("cbrt", "cosine", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "negate", "rsqrt"),
    *("sign", "sine", "sqrt", "tan", "tanh"),
)
BINARY = ("add", "divide", "multiply", "power", "subtract")


def of(shapes: list[str], kind: str, body: str, result: str) -> str:
    """A module of complex arguments `%0`, `%1`, … of these shapes, such as `2x3x`, each given as its two parts.

    `body` computes `%r` of the shape `result`; in it `{2x3x}` is the type of complex numbers of that shape.
    """

    def spelled(text: str) -> str:
        return re.sub(r"\{([0-9x?]*)\}", rf"tensor<\1complex<{kind}>>", text)

    made = [
        spelled(f"%{at} = stablehlo.complex %a{2 * at}, %a{2 * at + 1} : {{{shape}}}")
        for at, shape in enumerate(shapes)
    ]
    ends = [
        spelled(f"%r{at} = stablehlo.{name} %r : ({{{result}}}) -> tensor<{result}{kind}>")
        for at, name in enumerate(("real", "imag"))
    ]
    parts = [f"{shape}{kind}" for shape in shapes for _ in range(2)]
    return module(parts, "\n".join([*made, spelled(body), *ends]), *[f"{result}{kind}"] * 2)


def elementwise(name: str, kind: str, count: int, size: int) -> str:
    operands = ", ".join(f"%{at}" for at in range(count))
    return of([f"{size}x"] * count, kind, f"%r = stablehlo.{name} {operands} : {{{size}x}}", f"{size}x")


def points(kind: str, seed: int) -> list[Array]:
    """Parts of either sign, of which some are 0, and numbers near 1, very large and very small ones."""
    draws = np.random.default_rng(seed)
    wide = draws.integers(-12, 13, (2, 48)) / 4
    wide[:, 40:44] = [[1.0, 1e-3, -0.9999, 0.6], [1e-6, 1.0, 1e-3, -0.8]]
    wide[:, 44:] = [[3e15, 1e-15, 0.0, -2e12], [-4e14, 2e-15, 5e10, 0.0]]
    return [each.astype({"f32": np.float32, "f64": np.float64}[kind]) for each in wide]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", UNARY)
def test_a_function(name: str, kind: str) -> None:
    real, imag = points(kind, 1)
    if name in ("exponential", "exponential_minus_one", "sine", "cosine"):
        real, imag = (np.clip(each, -9, 9) for each in (real, imag))
    if name in ("rsqrt",):
        real[(real == 0) & (imag == 0)] = 1.0
    if name in ("log_plus_one", "exponential_minus_one"):
        # The interpreter goes by way of 1, and keeps nothing of small numbers.
        real[45] = imag[45] = 0.5
        real[real == -1] = 1.0
    if name == "log":
        real[(real == 0) & (imag == 0)] = 0.5
    close(elementwise(name, kind, 1, 48), [real, imag])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BINARY)
def test_arithmetic(name: str, kind: str) -> None:
    left, right = points(kind, 1), points(kind, 2)
    if name == "divide":
        right[0][(right[0] == 0) & (right[1] == 0)] = 1.0
    if name == "power":
        left, right = ([each[:40] / 2 for each in pair] for pair in (left, right))
        left[0][(left[0] == 0) & (left[1] == 0)] = 1.0
    size = len(left[0])
    close(elementwise(name, kind, 2, size), [*left, *right])


def close(text: str, arrays: list[Array]) -> None:
    """Both near each other, relative to the size of each number."""
    found, expected = (
        [each.astype(np.float64) for each in function(text, arrays)] for function in (computed, interpreted)
    )
    eps = float(np.finfo(arrays[0].dtype).eps)
    size = np.hypot(*expected)
    for left, right in zip(found, expected, strict=True):
        assert np.isfinite(right).all()
        assert np.abs(left - right).max() >= 0
        far = np.abs(left - right) / np.maximum(size, np.finfo(np.float64).tiny)
        assert far.max() <= 16 * eps, (far.argmax(), far.max() / eps)


@pytest.mark.parametrize("name", ["log_plus_one", "exponential_minus_one", "tanh", "tan"])
def test_near_0_nothing_is_lost(name: str) -> None:
    real, imag = (np.array([1e-18, -3e-17, 0.0, 2e-12]) for _ in range(2))
    found = computed(elementwise(name, "f64", 1, 4), [real, imag[::-1].copy()])
    for part, expected in zip(found, (real, imag[::-1]), strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-11, atol=1e-23)


def test_a_small_part_beside_a_large_one_keeps_its_digits() -> None:
    real = np.array([12.0, -15.0, 20.0, 300.0])
    expected = np.tanh(real + 1j)
    whole, rest = computed(elementwise("tanh", "f64", 1, 4), [real, np.ones(4)])
    np.testing.assert_allclose(whole, np.real(expected), rtol=1e-14)
    np.testing.assert_allclose(rest, 4 * np.exp(-2 * np.abs(real)) * np.sin(1) * np.cos(1), rtol=1e-9)
    rest, whole = computed(elementwise("tan", "f64", 1, 4), [np.ones(4), real])
    np.testing.assert_allclose(rest, 4 * np.exp(-2 * np.abs(real)) * np.sin(1) * np.cos(1), rtol=1e-9)
    np.testing.assert_allclose(whole, np.real(expected), rtol=1e-14)


def test_large_numbers_do_not_overflow() -> None:
    real = np.array([800.0, -800.0, 30.0, -400.0])
    for name, expected in (("tanh", [1, -1, 1, -1]), ("logistic", [1, 0, 1, 0])):
        whole, rest = computed(elementwise(name, "f64", 1, 4), [real, np.full(4, 2.0)])
        np.testing.assert_allclose(whole, expected, rtol=1e-12, atol=1e-170)
        assert np.abs(rest).max() < 1e-12


SPECIAL = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["log", "sqrt"])
def test_infinities_nan_and_signed_zeros_are_those_of_c99(name: str, kind: str) -> None:
    text = elementwise(name, kind, 1, 49)
    dtype = arguments(text)[0].dtype
    given = [each.reshape(-1).astype(dtype) for each in np.meshgrid(SPECIAL, SPECIAL)]
    with np.errstate(all="ignore"):
        found, expected = computed(text, given), interpreted(text, given)
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6, equal_nan=True)
        is_number = ~np.isnan(right)
        assert np.array_equal(np.signbit(left[is_number]), np.signbit(right[is_number]))


@pytest.mark.parametrize("name", ["cosine", "divide", "exponential", "multiply", "power", "rsqrt", "sign", "sine"])
def test_infinities_and_nan_give_what_is_not_finite_or_zero(name: str) -> None:
    count = 2 if name in BINARY else 1
    values = [each.reshape(-1) for each in np.meshgrid(*[SPECIAL] * 2 * count)]
    with np.errstate(all="ignore"):
        text = elementwise(name, "f64", count, len(values[0]))
        found, expected = computed(text, values), interpreted(text, values)
    is_finite = np.all([np.isfinite(each) for each in (*values, *expected)], 0)
    assert is_finite.sum() >= 8
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(left[is_finite], right[is_finite], rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_a_finite_number_over_an_infinite_one_is_0_even_if_a_part_is_nan(kind: str) -> None:
    dtype = {"f32": np.float32, "f64": np.float64}[kind]
    real = np.array([np.inf, -np.inf, np.nan, np.nan, np.inf], dtype)
    imag = np.array([np.nan, np.nan, np.inf, -np.inf, np.inf], dtype)
    ones = [np.ones(5, dtype), np.full(5, -2, dtype)]
    for name, given in (("divide", [*ones, real, imag]), ("rsqrt", [real, imag])):
        with np.errstate(all="ignore"):
            found = computed(elementwise(name, kind, len(given) // 2, 5), given)
        assert [each.tolist() for each in found] == [[0.0] * 5] * 2, name


@pytest.mark.parametrize("kind", KINDS)
def test_hyperbolic_tangents_of_infinities_and_nan_are_those_of_c99(kind: str) -> None:
    dtype = {"f32": np.float32, "f64": np.float64}[kind]
    real = np.array([np.inf, -np.inf, np.inf, -np.inf, np.nan, 1.0], dtype)
    imag = np.array([np.inf, -np.inf, np.nan, 2.0, -0.0, np.inf], dtype)
    whole, rest = np.array([1, -1, 1, -1, np.nan, np.nan]), np.array([0, 0, 0, 0, 0, np.nan])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(computed(elementwise("tanh", kind, 1, 6), [real, imag]), [whole, rest])
        np.testing.assert_array_equal(computed(elementwise("tan", kind, 1, 6), [imag, real]), [rest, whole])


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_and_comparisons(kind: str) -> None:
    both = f"tensor<48xcomplex<{kind}>>"
    body = f"""
    %0 = stablehlo.complex %a0, %a1 : {both}
    %1 = stablehlo.complex %a2, %a1 : {both}
    %r0 = stablehlo.abs %0 : ({both}) -> tensor<48x{kind}>
    %r1 = stablehlo.compare EQ, %0, %1 : ({both}, {both}) -> tensor<48xi1>
    %r2 = stablehlo.compare NE, %0, %1 : ({both}, {both}) -> tensor<48xi1>
    %r3 = stablehlo.real %a0 : (tensor<48x{kind}>) -> tensor<48x{kind}>
    %r4 = stablehlo.imag %a0 : (tensor<48x{kind}>) -> tensor<48x{kind}>"""
    text = module([f"48x{kind}"] * 3, body, f"48x{kind}", "48xi1", "48xi1", f"48x{kind}", f"48x{kind}")
    real, imag = points(kind, 3)
    other = np.where(np.arange(48) % 3 == 0, real, -real)
    real[5], imag[6], real[9] = np.nan, np.inf, -np.inf
    agree(text, [real, imag, other])


def test_conversions() -> None:
    narrow, wide = "tensor<48xcomplex<f32>>", "tensor<48xcomplex<f64>>"
    body = f"""
    %0 = stablehlo.complex %a0, %a1 : {wide}
    %1 = stablehlo.convert %0 : ({wide}) -> {narrow}
    %r0 = stablehlo.real %1 : ({narrow}) -> tensor<48xf32>
    %r1 = stablehlo.imag %1 : ({narrow}) -> tensor<48xf32>
    %2 = stablehlo.convert %a2 : (tensor<48xi32>) -> {narrow}
    %3 = stablehlo.add %1, %2 : {narrow}
    %r2 = stablehlo.real %3 : ({narrow}) -> tensor<48xf32>
    %r3 = stablehlo.imag %3 : ({narrow}) -> tensor<48xf32>
    %r4 = stablehlo.convert %3 : ({narrow}) -> tensor<48xf64>"""
    text = module(["48xf64", "48xf64", "48xi32"], body, *["48xf32"] * 4, "48xf64")
    agree(text, [*points("f64", 4), np.arange(48, dtype=np.int32)])


MOVED = """
    %c = stablehlo.constant dense<[[(1.5,-2.0),(0.25,0x7F800000),(3.0,4.0)]]> : {1x3x}
    %s = stablehlo.constant {note = "dense<(9.0,9.0)>"} dense<(0.5,-0.125)> : {}
    %i = stablehlo.constant dense<1> : tensor<i32>
    %p = stablehlo.constant dense<[[true, false, true], [false, true, true]]> : tensor<2x3xi1>
    %b = stablehlo.broadcast_in_dim %c, dims = [0, 1] : ({1x3x}) -> {2x3x}
    %j = stablehlo.concatenate %0, %b, dim = 0 : ({2x3x}, {2x3x}) -> {4x3x}
    %q = stablehlo.pad %j, %s, low = [1, 0], high = [0, -1], interior = [0, 1] : ({4x3x}, {}) -> {5x4x}
    %t = stablehlo.transpose %q, dims = [1, 0] : ({5x4x}) -> {4x5x}
    %d = stablehlo.dynamic_update_slice %t, %0, %i, %i : ({4x5x}, {2x3x}, tensor<i32>, tensor<i32>) -> {4x5x}
    %v = stablehlo.reverse %d, dims = [0] : {4x5x}
    %w = stablehlo.dynamic_slice %v, %k, %k, sizes = [2, 3] : ({4x5x}, tensor<i32>, tensor<i32>) -> {2x3x}
    %x = stablehlo.select %p, %w, %0 : tensor<2x3xi1>, {2x3x}
    %y = stablehlo.slice %x [0:2, 0:3:2] : ({2x3x}) -> {2x2x}
    %r = stablehlo.reshape %y : ({2x2x}) -> {4x}"""


@pytest.mark.parametrize("kind", KINDS)
def test_movement_takes_both_parts_along(kind: str) -> None:
    text = of(["2x3x"], kind, MOVED.replace("%k, %k", "%i, %i"), "4x")
    agree(text, [each[:6].reshape(2, 3) for each in points(kind, 5)])


CHOSEN = """
    %n = stablehlo.constant dense<3> : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %w:2 = stablehlo.while(%i = %zero, %z = %0) : tensor<i32>, {4x}
    cond {
      %t = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      %z1 = stablehlo.multiply %z, %z : {4x}
      %z2 = stablehlo.add %z1, %1 : {4x}
      %i1 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %i1, %z2 : tensor<i32>, {4x}
    }
    %m = stablehlo.real %1 : ({4x}) -> tensor<4xKIND>
    %m0 = stablehlo.slice %m [0:1] : (tensor<4xKIND>) -> tensor<1xKIND>
    %m1 = stablehlo.reshape %m0 : (tensor<1xKIND>) -> tensor<KIND>
    %f = stablehlo.constant dense<0.0> : tensor<KIND>
    %b = stablehlo.compare LT, %m1, %f : (tensor<KIND>, tensor<KIND>) -> tensor<i1>
    %r = "stablehlo.if"(%b) ({
      %x = func.call @square(%w#1) : ({4x}) -> {4x}
      stablehlo.return %x : {4x}
    }, {
      %x = stablehlo.constant dense<(1.0,-1.0)> : {4x}
      stablehlo.return %x : {4x}
    }) : (tensor<i1>) -> {4x}"""
SQUARE = """
func.func private @square(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %0 = stablehlo.multiply %x, %x : tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}"""


@pytest.mark.parametrize("first", [-0.5, 0.5])
def test_calls_loops_and_branches_pass_them_on(first: float) -> None:
    text = of(["4x", "4x"], "f32", CHOSEN.replace("KIND", "f32"), "4x") + SQUARE
    given = [each[4:8] / 4 for pair in (points("f32", 6), points("f32", 7)) for each in pair]
    given[2][0] = first
    agree(text, given)


@pytest.mark.parametrize("kind", KINDS)
def test_products_and_sums(kind: str) -> None:
    body = """
    %p = stablehlo.dot_general %0, %1, batching_dims = [0] x [0], contracting_dims = [2] x [1]
      : ({2x3x4x}, {2x4x5x}) -> {2x3x5x}
    %s = stablehlo.constant dense<(0.5,-1.0)> : {}
    %r = stablehlo.reduce(%p init: %s) applies stablehlo.add across dimensions = [0, 2] : ({2x3x5x}, {}) -> {3x}"""
    draws = np.random.default_rng(8)
    shapes = [(2, 3, 4)] * 2 + [(2, 4, 5)] * 2
    dtype = points(kind, 0)[0].dtype
    agree(of(["2x3x4x", "2x4x5x"], kind, body, "3x"), [(draws.integers(-9, 9, s) / 4).astype(dtype) for s in shapes])


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_windows(kind: str) -> None:
    body = """
    %z = stablehlo.constant dense<0.0> : {}
    %r = "stablehlo.reduce_window"(%0, %z) <{window_dimensions = array<i64: 5, 1>,
      padding = dense<[[4, 0], [0, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%x: {}, %y: {}):
      %s = stablehlo.add %x, %y : {}
      stablehlo.return %s : {}
    }) : ({5x3x}, {}) -> {5x3x}"""
    given = [each[:15].reshape(5, 3) for each in points(kind, 11)]
    agree(of(["5x3x"], kind, body.replace("<0.0>", "<(0.0,0.0)>"), "5x3x"), given)
    for other in (body.replace("<0.0>", "<(1.0,0.0)>"), body.replace(".add", ".multiply")):
        with pytest.raises(UnsupportedGraphError, match="complex numbers in windows can only be summed up, from 0"):
            translate(of(["5x3x"], kind, other.replace("<0.0>", "<(0.0,0.0)>"), "5x3x"))


SCATTERED = """
    %i = stablehlo.constant dense<[[4], [1], [9], [1]]> : tensor<4x1xi32>
    %r = "stablehlo.scatter"(%0, %i, %1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%x: {}, %y: {}):
      REGION
    }) : ({6x2x}, tensor<4x1xi32>, {4x2x}) -> {6x2x}"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "region", ["stablehlo.return %y : {}", "%s = stablehlo.add %x, %y : {}\nstablehlo.return %s : {}"]
)
def test_scatters_write_or_add_both_parts(region: str, kind: str) -> None:
    dtype = points(kind, 0)[0].dtype
    given = [np.random.default_rng(at).integers(-9, 9, (6 if at < 2 else 4, 2)).astype(dtype) for at in range(4)]
    agree(of(["6x2x", "4x2x"], kind, SCATTERED.replace("REGION", region), "6x2x"), given)


def test_a_scatter_that_multiplies_complex_numbers_is_refused() -> None:
    region = "%s = stablehlo.multiply %x, %y : {}\nstablehlo.return %s : {}"
    with pytest.raises(UnsupportedGraphError, match="complex numbers can only be scattered as they are, or added"):
        translate(of(["6x2x", "4x2x"], "f32", SCATTERED.replace("REGION", region), "6x2x"))


def test_constants_as_text_and_as_bytes_are_exact() -> None:
    draws = np.random.default_rng(9)
    for kind, count in (("f32", 3), ("f64", 3), ("f32", 300), ("f64", 300)):
        dtype = points(kind, 0)[0].dtype
        numbers = draws.normal(size=(count, 2)).astype(dtype)
        line = f'stablehlo.constant dense<"0x{numbers.tobytes().hex()}">'
        body = f"%c = {line} : {{{count}x}}\n%r = stablehlo.subtract %c, %0 : {{{count}x}}"
        found = computed(of([f"{count}x"], kind, body, f"{count}x"), [np.zeros(count, dtype)] * 2)
        assert np.array_equal(np.stack(found, -1), numbers)


def test_arguments_and_results_are_pairs_on_a_last_axis() -> None:
    body = "%r0 = stablehlo.multiply %a0, %a0 : tensor<?x3xcomplex<f32>>"
    text = module(["?x3xcomplex<f32>"], body, "?x3xcomplex<f32>")
    graph = Graph.model_validate(translate(text, {"0.0": (1, 8)}).document)
    assert [str(each) for each in graph.types[graph.input_vars[0]].shape] == ["d0_0", "3", "2"]
    draws = np.random.default_rng(10).normal(size=(5, 3, 2)).astype(np.float32)
    numbers = draws[..., 0] + 1j * draws[..., 1]
    (found,) = evaluate(graph, draws, d0_0=5)
    expected = numbers * numbers
    np.testing.assert_allclose(found, np.stack([expected.real, expected.imag], -1), rtol=1e-5, atol=1e-6)


def test_a_size_is_read_from_a_complex_argument() -> None:
    size = "%0 = stablehlo.get_dimension_size %a0, dim = 0 : (tensor<?x3xcomplex<f32>>) -> tensor<i32>"
    body = (
        f"{size}\n%r0 = stablehlo.multiply %a0, %a0 : tensor<?x3xcomplex<f32>>\n%r1 = stablehlo.negate %0 : tensor<i32>"
    )
    text = module(["?x3xcomplex<f32>"], body, "?x3xcomplex<f32>", "i32")
    graph = Graph.model_validate(translate(text, {"0.0": (1, 8)}).document)
    assert evaluate(graph, np.ones((5, 3, 2), np.float32), d0_0=5)[1] == -5


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%r = stablehlo.atan2 %0, %0 : {4x}", "stablehlo.atan2: complex numbers are not supported by this operation"),
        (
            """%c = stablehlo.constant dense<(1.0,0.0)> : {}
            %s = stablehlo.reduce(%0 init: %c) applies stablehlo.multiply across dimensions = [0] : ({4x}, {}) -> {}
            %r = stablehlo.broadcast_in_dim %s, dims = [] : ({}) -> {4x}""",
            "stablehlo.reduce: complex numbers can only be reduced by a sum",
        ),
        (
            """%r = "stablehlo.map"(%0) <{dimensions = array<i64: 0>}> ({
            ^bb0(%x: {}):
              %n = stablehlo.negate %x : {}
              stablehlo.return %n : {}
            }) : ({4x}) -> {4x}""",
            "stablehlo.map: complex numbers are not supported by this operation",
        ),
    ],
)
def test_unsupported_operations_on_complex_numbers_are_refused_by_name(line: str, message: str) -> None:
    with pytest.raises(UnsupportedGraphError) as caught:
        translate(of(["4x"], "f32", line, "4x"))
    assert message in re.sub(r" at [^:]*:\d+:\d+", "", caught.value.message)
