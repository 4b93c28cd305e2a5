"""Constants and movement against the interpreter of StableHLO."""

from __future__ import annotations

import numpy as np
import pytest

from .modules import FLOATS, INTEGERS, module
from .oracle import agree, arguments, computed

KINDS = ("f32", "bf16", "i1", "ui8", "i64")


def _pads(kind: str) -> str:
    wide, narrow = f"tensor<2x3x{kind}>", f"tensor<{kind}>"
    return module(
        [f"2x3x{kind}", kind],
        f"""
        %r0 = stablehlo.pad %a0, %a1, low = [1, 0], high = [0, 2], interior = [0, 0]
          : ({wide}, {narrow}) -> tensor<3x5x{kind}>
        %r1 = stablehlo.pad %a0, %a1, low = [1, -1], high = [-1, 2], interior = [1, 2]
          : ({wide}, {narrow}) -> tensor<3x8x{kind}>
        %r2 = stablehlo.pad %a0, %a1, low = [0, 0], high = [0, -3], interior = [0, 0]
          : ({wide}, {narrow}) -> tensor<2x0x{kind}>""",
        f"3x5x{kind}",
        f"3x8x{kind}",
        f"2x0x{kind}",
    )


@pytest.mark.parametrize("kind", KINDS)
def test_padding(kind: str) -> None:
    text = _pads(kind)
    agree(text, arguments(text))


@pytest.mark.parametrize("fill", ["0.0", "-0.0", "1.5", "0xFF800000", "0x7FC00000"])
def test_padding_with_a_constant_keeps_its_sign(fill: str) -> None:
    text = module(
        ["3xf32"],
        f"""
        %c = stablehlo.constant dense<{fill}> : tensor<f32>
        %r0 = stablehlo.pad %a0, %c, low = [1], high = [1], interior = [1]
          : (tensor<3xf32>, tensor<f32>) -> tensor<7xf32>""",
        "7xf32",
    )
    x = np.array([1.0, -0.0, 2.0], np.float32)
    agree(text, [x])
    (found,) = computed(text, [x])
    assert np.signbit(found[0]) == fill.startswith(("-", "0xF"))


@pytest.mark.parametrize("kind", KINDS)
def test_arrangements(kind: str) -> None:
    whole = f"tensor<2x3x4x{kind}>"
    text = module(
        [f"2x3x4x{kind}", f"3x{kind}", kind],
        f"""
        %r0 = stablehlo.transpose %a0, dims = [2, 0, 1] : ({whole}) -> tensor<4x2x3x{kind}>
        %r1 = stablehlo.reshape %a0 : ({whole}) -> tensor<6x4x{kind}>
        %r2 = stablehlo.reverse %a0, dims = [0, 2] : {whole}
        %r3 = stablehlo.slice %a0 [0:2, 1:3:2, 0:4:3] : ({whole}) -> tensor<2x1x2x{kind}>
        %r4 = stablehlo.broadcast_in_dim %a1, dims = [1] : (tensor<3x{kind}>) -> tensor<2x3x4x{kind}>
        %r5 = stablehlo.broadcast_in_dim %a2, dims = [] : (tensor<{kind}>) -> tensor<5x{kind}>
        %r6 = stablehlo.concatenate %a0, %r2, dim = 1 : ({whole}, {whole}) -> tensor<2x6x4x{kind}>
        %0 = stablehlo.reshape %a1 : (tensor<3x{kind}>) -> tensor<1x3x{kind}>
        %r7 = stablehlo.broadcast_in_dim %0, dims = [2, 0] : (tensor<1x3x{kind}>) -> tensor<3x2x4x{kind}>
        %r8 = stablehlo.optimization_barrier %a1 : tensor<3x{kind}>""",
        *(f"{shape}x{kind}" for shape in ("4x2x3", "6x4", "2x3x4", "2x1x2", "2x3x4", "5", "2x6x4", "3x2x4", "3")),
    )
    agree(text, arguments(text))


@pytest.mark.parametrize("kind", [*FLOATS, *INTEGERS])
def test_positions(kind: str) -> None:
    text = module([], f"%r0 = stablehlo.iota dim = 1 : tensor<2x120x{kind}>", f"2x120x{kind}")
    agree(text, [])


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("[[1.5, -2.0], [0x7F800000, 0x7FC00000]]", "2x2xf32"),
        ("[1.5, -2.0, 0x7F80, 0x7FC0, 1.0e-3]", "5xbf16"),
        ("[1.5, -2.0, 6.0e4]", "3xf16"),
        ("[true, false, true]", "3xi1"),
        ("true", "4xi1"),
        ("[255, 0, 7]", "3xui8"),
        ("18446744073709551615", "2xui64"),
        ("-9223372036854775808", "2xi64"),
        ("[[1], [2]]", "2x1xi8"),
        ("0.1", "3x2xf64"),
        ("3.0", "3x2xbf16"),
        ("7", "i32"),
        ("", "0xf32"),
    ],
)
def test_a_constant(value: str, kind: str) -> None:
    text = module([], f"%r0 = stablehlo.constant dense<{value}> : tensor<{kind}>", kind)
    agree(text, [])


def test_a_constant_of_many_elements_in_hexadecimal_digits() -> None:
    numbers = np.arange(300, dtype=np.float32).astype("float32")
    digits = (numbers.view(np.uint32) >> 16).astype(np.uint16).tobytes().hex().upper()
    text = module([], f'%r0 = stablehlo.constant dense<"0x{digits}"> : tensor<300xbf16>', "300xbf16")
    agree(text, [])


def test_arithmetic_of_constants_is_done_during_the_translation() -> None:
    text = module(
        ["2x3xi32"],
        """
        %c = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi8>
        %d = stablehlo.constant dense<100> : tensor<3xi8>
        %0 = stablehlo.multiply %c, %d : tensor<3xi8>
        %1 = stablehlo.convert %0 : (tensor<3xi8>) -> tensor<3xi32>
        %2 = stablehlo.divide %1, %1 : tensor<3xi32>
        %3 = stablehlo.subtract %1, %2 : tensor<3xi32>
        %4 = stablehlo.broadcast_in_dim %3, dims = [1] : (tensor<3xi32>) -> tensor<2x3xi32>
        %5 = stablehlo.compare LT, %1, %2 : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
        %6 = stablehlo.select %5, %1, %2 : tensor<3xi1>, tensor<3xi32>
        %7 = stablehlo.not %6 : tensor<3xi32>
        %8 = stablehlo.broadcast_in_dim %7, dims = [1] : (tensor<3xi32>) -> tensor<2x3xi32>
        %9 = stablehlo.add %a0, %4 : tensor<2x3xi32>
        %r0 = stablehlo.xor %9, %8 : tensor<2x3xi32>""",
        "2x3xi32",
    )
    agree(text, arguments(text))
