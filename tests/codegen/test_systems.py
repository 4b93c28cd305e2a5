"""CPU code is made for systems whose objects can be verified; every other triple is a diagnostic."""

from __future__ import annotations

import pytest

from passes.codegen import object_code
from tensorkiln.errors import DiagnosticError
from tensorkiln.target import Target

NOTHING = "define void @nothing() {\n  ret void\n}\n"


def target(triple: str) -> Target:
    return Target(kind="cpu", triple=triple, cpu="generic", features=())


@pytest.mark.parametrize(
    "triple",
    [
        "x86_64-unknown-linux-gnu",
        "x86_64-unknown-linux-musl",
        "x86_64-conda-linux-gnu",
        "x86_64-pc-linux",
        "x86_64-linux-gnu",
        "aarch64-linux-android29",
        "arm64-unknown-linux-gnu",
    ],
)
def test_code_is_made_for_linux(triple: str) -> None:
    assert object_code.emit(NOTHING, target(triple)).startswith(b"\x7fELF")


@pytest.mark.parametrize(
    "triple",
    [
        "x86_64-apple-darwin",
        "arm64-apple-macosx14.0.0",
        "arm64-apple-ios",
        "x86_64-pc-windows-msvc",
        "x86_64-pc-windows-elf",
        "x86_64-linux-windows-elf",
        "x86_64-pc-win32",
        "x86_64-unknown-uefi",
        "x86_64",
        "riscv64-unknown-linux-gnu",
    ],
)
def test_another_system_is_refused_and_what_is_supported_is_named(triple: str) -> None:
    with pytest.raises(DiagnosticError, match=f"{triple}.*aarch64, arm64, x86_64 on Linux") as caught:
        object_code.emit(NOTHING, target(triple))
    assert caught.value.details == {"stage": "codegen"}


@pytest.mark.parametrize("triple", ["x86_64-unknown-linux-gnux32", "x86_64-unknown-linux-macho"])
def test_an_object_that_nobody_can_read_is_refused_whatever_its_triple(triple: str) -> None:
    with pytest.raises(DiagnosticError, match="it is not 64-bit little-endian ELF"):
        object_code.emit(NOTHING, target(triple))
