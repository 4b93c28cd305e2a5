"""Modules as text, from the types of the arguments and the body of the main function."""

from __future__ import annotations

from collections.abc import Sequence


def module(arguments: Sequence[str], body: str, *results: str, more: str = "") -> str:
    """A module whose main function takes `%a0`, `%a1`, … and returns `%r0`, `%r1`, …; types without `tensor<>`."""
    listed = ", ".join(f"%a{at}: tensor<{kind}>" for at, kind in enumerate(arguments))
    kinds = ", ".join(f"tensor<{kind}>" for kind in results)
    names = ", ".join(f"%r{at}" for at in range(len(results)))
    return f"func.func @main({listed}) -> ({kinds}) {{\n{body}\nreturn {names} : {kinds}\n}}\n{more}"


FLOATS = ("f16", "bf16", "f32", "f64")
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("ui8", "ui16", "ui32", "ui64")
INTEGERS = (*SIGNED, *UNSIGNED)


def unary(name: str, kind: str) -> str:
    """One elementwise operation of one operand."""
    return module([f"40x{kind}"], f"%r0 = stablehlo.{name} %a0 : tensor<40x{kind}>", f"40x{kind}")


def binary(name: str, kind: str) -> str:
    """One elementwise operation of two operands."""
    return module([f"40x{kind}"] * 2, f"%r0 = stablehlo.{name} %a0, %a1 : tensor<40x{kind}>", f"40x{kind}")
