"""Objects of other systems are refused: LLVM's loader would end the process on them."""

from __future__ import annotations

import sys
from typing import cast

import pytest

from tensorkiln.errors import DeviceError
from tensorkiln.runtime.engine import load_object
from tests.runtime.kernels import DOUBLE, compile_object, llvm


def emitted(triple: str) -> bytes:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(reloc="pic")
    return cast(bytes, machine.emit_object(llvm.parse_assembly(DOUBLE)))


@pytest.mark.parametrize(
    "triple",
    [
        "x86_64-apple-darwin",
        "arm64-apple-darwin",
        "x86_64-pc-windows-msvc",
        "aarch64-pc-windows-msvc",
        "x86_64-unknown-linux-gnux32",
        "i386-unknown-linux-gnu",
    ],
)
def test_an_object_of_another_format_is_refused(triple: str) -> None:
    with pytest.raises(DeviceError, match="not a 64-bit ELF object; compile it for Linux"):
        load_object(emitted(triple), triple)


def test_nothing_is_loaded_where_objects_have_another_format(monkeypatch: pytest.MonkeyPatch) -> None:
    content = compile_object(DOUBLE)
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(DeviceError, match="CPU programs run on Linux, and this system is darwin"):
        load_object(content, "elsewhere")
