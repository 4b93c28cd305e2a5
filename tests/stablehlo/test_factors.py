"""Factors of matrices: the operations of StableHLO, and the calls of LAPACK that JAX exports for a CPU."""

from __future__ import annotations

import numpy as np
import pytest

from stablehlo.translate import translate
from tensorkiln.errors import InvalidGraphError, UnsupportedGraphError

from .modules import module
from .oracle import computed


@pytest.mark.parametrize("kind", ["f32", "f64", "f16"])
@pytest.mark.parametrize("is_lower", [True, False])
def test_a_factor_is_that_of_numpy(is_lower: bool, kind: str) -> None:
    dtype = {"f32": np.float32, "f64": np.float64, "f16": np.float16}[kind]
    x = np.random.default_rng(1).normal(size=(2, 4, 4))
    whole = (x @ x.swapaxes(-1, -2) + np.eye(4)).astype(dtype)
    read = np.tri(4) if is_lower else np.tri(4).T
    line = f"stablehlo.cholesky %a0, lower = {str(is_lower).lower()} : tensor<2x4x4x{kind}>"
    (found,) = computed(module([f"2x4x4x{kind}"], f"%r0 = {line}", f"2x4x4x{kind}"), [np.where(read > 0, whole, 0)])
    wanted = np.linalg.cholesky(whole.astype(np.float64))
    assert found.dtype == dtype
    near = {"f32": 1e-5, "f64": 1e-12, "f16": 4e-3}[kind]
    np.testing.assert_allclose(found, wanted if is_lower else wanted.swapaxes(-1, -2), atol=near, rtol=near)


@pytest.mark.parametrize("transposed", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
@pytest.mark.parametrize("is_lower", [True, False])
@pytest.mark.parametrize("is_left", [True, False])
@pytest.mark.parametrize("is_unit", [True, False])
def test_a_triangular_system_is_solved(is_unit: bool, is_left: bool, is_lower: bool, transposed: str) -> None:
    draws = np.random.default_rng(2)
    x, right = draws.normal(size=(4, 4)) + 3 * np.eye(4), draws.normal(size=(4, 2) if is_left else (2, 4))
    shape = "4x2xf64" if is_left else "2x4xf64"
    flags = ", ".join(
        f"{name} = {str(value).lower()}"
        for name, value in (("left_side", is_left), ("lower", is_lower), ("unit_diagonal", is_unit))
    )
    line = f'"stablehlo.triangular_solve"(%a0, %a1) <{{{flags}, transpose_a = #stablehlo<transpose {transposed}>}}>'
    text = module(["4x4xf64", shape], f"%r0 = {line} : (tensor<4x4xf64>, tensor<{shape}>) -> tensor<{shape}>", shape)
    used = np.tril(x) if is_lower else np.triu(x)
    if is_unit:
        np.fill_diagonal(used, 1)
    if transposed != "NO_TRANSPOSE":
        used = used.T
    wanted = np.linalg.solve(used, right) if is_left else np.linalg.solve(used.T, right.T).T
    np.testing.assert_allclose(computed(text, [x, right])[0], wanted, rtol=1e-12)


def call(target: str, arguments: list[str], config: str, *results: str) -> str:
    """A call of LAPACK, as JAX writes it."""
    given = ", ".join(f"%a{at}" for at in range(len(arguments)))
    kinds = [", ".join(f"tensor<{each}>" for each in side) for side in (arguments, results)]
    spelled = f"stablehlo.custom_call @{target}({given}) {{mhlo.backend_config = {{{config}}}}} : ({kinds[0]})"
    if len(results) == 1:
        return module(arguments, f"%r0 = {spelled} -> {kinds[1]}", *results)
    named = "\n".join(
        f"%r{at} = stablehlo.optimization_barrier %0#{at} : tensor<{kind}>" for at, kind in enumerate(results)
    )
    return module(arguments, f"%0:{len(results)} = {spelled} -> ({kinds[1]})\n{named}", *results)


def test_calls_say_whether_a_matrix_could_be_factored() -> None:
    good, bad = np.array([[2, 1], [1, 2]], np.float32), np.array([[2, 3], [3, 2]], np.float32)
    text = call("lapack_spotrf_ffi", ["2x2x2xf32"], "uplo = 85 : ui8", "2x2x2xf32", "2xi32")
    assert computed(text, [np.stack([good, bad])])[1].tolist() == [0, 2]
    text = call("lapack_sgetrf_ffi", ["2x2x2xf32"], "", "2x2x2xf32", "2x2xi32", "2xi32")
    _, exchanges, states = computed(text, [np.stack([bad, np.zeros((2, 2), np.float32)])])
    assert exchanges.tolist() == [[2, 2], [1, 2]]
    assert states.tolist() == [0, 1]
    text = call("lapack_ssyevd_ffi", ["2x2x2xf32"], "mode = 86 : ui8, uplo = 76 : ui8", "2x2x2xf32", "2x2xf32", "2xi32")
    _, values, states = computed(text, [np.stack([good, good * np.float32(np.nan)])])
    np.testing.assert_allclose(values[0], [1, 3], rtol=1e-6)
    assert states.tolist() == [0, 1]


@pytest.mark.parametrize("shape", ["2x5", "5x2"])
@pytest.mark.parametrize("is_full", [True, False])
def test_singular_values_alone_come_with_vectors_of_either_size(is_full: bool, shape: str) -> None:
    m, n = map(int, shape.split("x"))
    kinds = [f"3x{m}x{m if is_full else 2}xf64", f"3x{n if is_full else 2}x{n}xf64"]
    text = call(
        "lapack_dgesdd_ffi", [f"3x{shape}xf64"], "mode = 78 : ui8", f"3x{shape}xf64", "3x2xf64", *kinds, "3xi32"
    )
    x = np.random.default_rng(4).normal(size=(3, m, n))
    _, values, *vectors, states = computed(text, [x])
    np.testing.assert_allclose(values, np.linalg.svd(x, compute_uv=False), rtol=1e-12)
    assert ["x".join(map(str, each.shape)) + "xf64" for each in vectors] == kinds
    assert states.tolist() == [0, 0, 0]


def test_a_call_with_too_few_results_is_refused() -> None:
    text = call("lapack_dgesdd_ffi", ["2x5xf64"], "mode = 78 : ui8", "2x5xf64", "2xf64")
    with pytest.raises(InvalidGraphError, match="five results"):
        translate(text)


def test_an_empty_matrix_has_no_eigenvalues() -> None:
    text = call("lapack_dsyevd_ffi", ["3x0x0xf64"], "uplo = 76 : ui8", "3x0x0xf64", "3x0xf64", "3xi32")
    vectors, values, states = computed(text, [np.zeros((3, 0, 0))])
    assert (vectors.shape, values.shape, states.tolist()) == ((3, 0, 0), (3, 0), [0, 0, 0])


SOLVE = "diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (call("lapack_spotrf_ffi", ["3x2xf32"], "uplo = 76 : ui8", "3x2xf32", "i32"), "square matrices of floats"),
        (call("lapack_spotrf_ffi", ["2xf32"], "uplo = 76 : ui8", "2xf32", "i32"), "square matrices of floats"),
        (call("lapack_spotrf_ffi", ["2x2xi32"], "uplo = 76 : ui8", "2x2xi32", "i32"), "not int32 of"),
        (call("lapack_strsm_ffi", ["2x2xf32", "3x2xf32"], SOLVE, "3x2xf32"), "has no right side of 3, 2"),
        (call("lapack_strsm_ffi", ["2x2xf32", "2x2xf64"], SOLVE, "2x2xf64"), "has no right side"),
        (call("lapack_strsm_ffi", ["2x2xf32"], SOLVE, "2x2xf32"), "it takes two operands"),
        (call("lapack_sorgqr_ffi", ["2x2xf32", "3x2xf32"], "", "2x2xf32"), "as many lists of factors as matrices"),
    ],
)
def test_a_call_on_operands_that_do_not_fit_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidGraphError, match=rf"^stablehlo\.custom_call at .*{message}"):
        translate(text)


@pytest.mark.parametrize("config", ["", "uplo = 9 : ui8"])
def test_an_option_that_lapack_lacks_is_refused(config: str) -> None:
    with pytest.raises(UnsupportedGraphError, match="the option uplo of this call has to be one of L, U"):
        translate(call("lapack_spotrf_ffi", ["2x2xf32"], config, "2x2xf32", "i32"))


def test_calls_for_complex_numbers_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedGraphError, match="the custom call 'lapack_cpotrf_ffi' is not supported"):
        translate(call("lapack_cpotrf_ffi", ["2x2xf32"], "uplo = 76 : ui8", "2x2xf32", "i32"))
