"""Arithmetic intrinsics that round as IEEE 754 says, by LLVM's generic instructions.

The approximate ones (`ex2.approx`, `rcp.approx`, …) are not here: their results are the hardware's own, and a host that
computed them exactly would hide how far off they are. Nor is anything that flushes denormals (`ftz`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from .stub import Addresses, Stub

_TYPES: Final = {"f": ("float", "f32"), "d": ("double", "f64")}
_UNARY: Final = {"fabs": "fabs", "sqrt.rn": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc"}
_BINARY: Final = {"fmin": "minimumnum", "fmax": "maximumnum"}
_INSTRUCTIONS: Final = {"add.rn": "fadd", "mul.rn": "fmul", "div.rn": "fdiv"}


def _intrinsic(generic: str, kind: str, count: int) -> Callable[[Addresses], str]:
    arguments = ", ".join(f"{kind} %a{index}" for index in range(count))
    return lambda _: f"  %r = call {kind} @{generic}({arguments})\n  ret {kind} %r"


def _instruction(operation: str, kind: str) -> Callable[[Addresses], str]:
    return lambda _: f"  %r = {operation} {kind} %a0, %a1\n  ret {kind} %r"


def _reciprocal(kind: str) -> Callable[[Addresses], str]:
    return lambda _: f"  %r = fdiv {kind} 1.0, %a0\n  ret {kind} %r"


def _generic(name: str, generic: str, kind: str, count: int) -> Stub:
    declaration = f"declare {kind} @{generic}({', '.join([kind] * count)})"
    return Stub(name, kind, (kind,) * count, _intrinsic(generic, kind, count), declarations=(declaration,))


def _of_type(letter: str, kind: str, suffix: str) -> Iterator[Stub]:
    for name, generic in _UNARY.items():
        yield _generic(f"{name}.{letter}", f"llvm.{generic}.{suffix}", kind, 1)
        yield _generic(f"{name}.{suffix}", f"llvm.{generic}.{suffix}", kind, 1)
    for name, generic in _BINARY.items():
        yield _generic(f"{name}.{letter}", f"llvm.{generic}.{suffix}", kind, 2)
    yield _generic(f"fma.rn.{letter}", f"llvm.fma.{suffix}", kind, 3)
    for name, operation in _INSTRUCTIONS.items():
        yield Stub(f"{name}.{letter}", kind, (kind, kind), _instruction(operation, kind))
    yield Stub(f"rcp.rn.{letter}", kind, (kind,), _reciprocal(kind))


ARITHMETIC: Final = tuple(stub for letter, names in _TYPES.items() for stub in _of_type(letter, *names))
