"""fft against NumPy's, in float64: the interpreter of StableHLO has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stablehlo.translate import translate
from tensorkiln.errors import UnsupportedGraphError

from .modules import module
from .oracle import Array, computed

EPS = {"f32": 2.0**-23, "f64": 2.0**-52}
DTYPES: dict[str, Any] = {"f32": np.float32, "f64": np.float64}


def transformed(kind: str, shape: str, result: str, how: str, lengths: str, real: tuple[bool, bool]) -> str:
    """A module that transforms its argument; complex numbers are pairs on a last axis."""
    given, made = (f"{kind}" if is_real else f"complex<{kind}>" for is_real in real)
    line = (
        f"stablehlo.fft %a0, type = {how}, length = [{lengths}] : (tensor<{shape}x{given}>) -> tensor<{result}x{made}>"
    )
    return module([f"{shape}x{given}"], f"%r0 = {line}", f"{result}x{made}")


def near(found: Array, expected: Array, kind: str) -> None:
    """Within a few roundings of the largest element, of this type."""
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= {"f32": 1, "f64": 8}[kind] * EPS[kind] * np.abs(expected).max()


def pairs(x: Any) -> Array:
    return np.stack([x.real, x.imag], -1)


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("length", [1, 2, 3, 8, 15, 31, 61, 64, 97, 120, 514, 1000, 2048])
def test_a_transform_of_one_axis_and_back(length: int, kind: str) -> None:
    draws = np.random.default_rng(length)
    x = (draws.normal(size=(2, length)) + 1j * draws.normal(size=(2, length))).astype(f"c{2 * DTYPES[kind]().itemsize}")
    shape = f"2x{length}"
    (there,) = computed(transformed(kind, shape, shape, "FFT", f"{length}", (False, False)), [pairs(x)])
    assert there.dtype == DTYPES[kind]
    near(there, pairs(np.fft.fft(x.astype(np.complex128))), kind)
    (back,) = computed(transformed(kind, shape, shape, "IFFT", f"{length}", (False, False)), [pairs(x)])
    near(back, pairs(np.fft.ifft(x.astype(np.complex128))), kind)


@pytest.mark.parametrize("length", [1, 2, 3, 8, 15, 64, 97])
def test_a_real_signal_and_back(length: int) -> None:
    draws = np.random.default_rng(length)
    x, half = draws.normal(size=(3, length)), length // 2 + 1
    (there,) = computed(transformed("f64", f"3x{length}", f"3x{half}", "RFFT", f"{length}", (True, False)), [x])
    near(there, pairs(np.fft.rfft(x)), "f64")
    # Parts that no real signal has are not looked at.
    bins = draws.normal(size=(3, half)) + 1j * draws.normal(size=(3, half))
    text = transformed("f64", f"3x{half}", f"3x{length}", "IRFFT", f"{length}", (False, True))
    (back,) = computed(text, [pairs(bins)])
    near(back, np.fft.irfft(bins, length), "f64")


PLANES: list[tuple[str, bool, bool, Callable[..., Array]]] = [
    ("FFT", False, False, np.fft.fftn),
    ("IFFT", False, False, np.fft.ifftn),
    ("RFFT", True, False, np.fft.rfftn),
    ("IRFFT", False, True, np.fft.irfftn),
]


@pytest.mark.parametrize(("how", "takes_real", "gives_real", "expected"), PLANES)
@pytest.mark.parametrize("sizes", [(4, 6), (2, 5, 3)])
def test_several_axes(
    sizes: tuple[int, ...], how: str, takes_real: bool, gives_real: bool, expected: Callable[..., Array]
) -> None:
    draws = np.random.default_rng(3)
    half = (*sizes[:-1], sizes[-1] // 2 + 1)
    own, other = (half if how == "IRFFT" else sizes), (half if how == "RFFT" else sizes)
    x = draws.normal(size=(2, *own)) + (0 if takes_real else 1j * draws.normal(size=(2, *own)))
    axes = tuple(range(1, len(sizes) + 1))
    wanted = expected(x, s=sizes, axes=axes)
    spelled = ["x".join(map(str, (2, *each))) for each in (own, other)]
    text = transformed("f64", spelled[0], spelled[1], how, ", ".join(map(str, sizes)), (takes_real, gives_real))
    (found,) = computed(text, [x if takes_real else pairs(x)])
    near(found, wanted if gives_real else pairs(wanted), "f64")


def test_a_long_transform_has_turns_that_are_computed() -> None:
    length = 1 << 14
    draws = np.random.default_rng(5)
    x = draws.normal(size=length) + 1j * draws.normal(size=length)
    text = transformed("f64", f"{length}", f"{length}", "FFT", f"{length}", (False, False))
    assert len(str(translate(text).document)) < 500_000
    (found,) = computed(text, [pairs(x)])
    near(found, pairs(np.fft.fft(x)), "f64")


def test_rows_may_be_a_symbol() -> None:
    text = transformed("f32", "?x6", "?x4", "RFFT", "6", (True, False))
    document = translate(text, {"0.0": (1, 9)}).document
    assert document["symbolic_vars"]


@pytest.mark.parametrize(
    ("length", "message"),
    [
        (1 << 21, "a transform of 2097152 elements is longer than 1048576"),
        (2 * 16411, "a transform of 32822 elements, which has the prime factor 16411: the largest is 16384"),
    ],
)
def test_transforms_that_are_too_long_are_refused_by_name(length: int, message: str) -> None:
    with pytest.raises(UnsupportedGraphError, match=message):
        translate(transformed("f32", f"{length}", f"{length}", "FFT", f"{length}", (False, False)))
