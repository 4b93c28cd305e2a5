"""Programs that this machine cannot run, and artifacts that are not what they should be."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from tensorkiln.errors import CallBoundsError, DeviceError, UnavailableError
from tensorkiln.program import Program
from tensorkiln.runtime.engine import load_object
from tensorkiln.runtime.object_file import object_needs
from tensorkiln.spec import CompiledProgram
from tensorkiln.target import Target
from tests.runtime.kernels import DOUBLE, EXP, compile_object, llvm
from tests.runtime.sketch import Sketch


def one_kernel(ir: str = DOUBLE, entry: str = "double_it") -> Sketch:
    sketch = Sketch(symbols={"n": (1, 100)})
    sketch.launch(ir, entry, [sketch.buffer([4], "input"), sketch.buffer([4], "output")], var_names=("n",))
    return sketch


def with_object(content: bytes) -> tuple[CompiledProgram, dict[str, bytes]]:
    """A program whose only kernel is `content`."""
    sketch = one_kernel()
    compiled = sketch.compiled()
    kernel = compiled.kernels[0].model_copy(update={"artifact": sketch.store(content)})
    return compiled.model_copy(update={"kernels": (kernel,)}), sketch.artifacts


def test_an_instruction_set_that_this_processor_lacks_is_named() -> None:
    sketch = one_kernel()
    sketch.target = sketch.target.model_copy(update={"features": ("no-such-isa", "warp-drive")})
    with pytest.raises(DeviceError, match="this processor lacks no-such-isa, warp-drive") as caught:
        sketch.program()
    assert caught.value.details == {"missing_features": ["no-such-isa", "warp-drive"]}


def test_a_program_for_this_very_machine_loads() -> None:
    sketch = one_kernel()
    sketch.target = Target.parse("cpu:native")
    sketch.program()


def test_a_program_for_another_kind_of_device_is_refused() -> None:
    sketch = one_kernel()
    sketch.target = Target.parse("rocm:gfx942")
    with pytest.raises(DeviceError, match="the program is for rocm, for which there is no runtime"):
        sketch.program()
    sketch.target = Target.parse("cuda:sm_90")
    with pytest.raises(DeviceError, match="kernel double_it has no local_size"):
        sketch.program()


def test_an_artifact_with_other_bytes_is_never_mapped() -> None:
    sketch = one_kernel()
    digest = next(iter(sketch.artifacts))
    sketch.artifacts[digest] = sketch.artifacts[digest][:-1] + b"!"
    with pytest.raises(UnavailableError, match=f"artifact {digest} is corrupt"):
        sketch.program()


def test_a_constant_with_other_bytes_is_refused() -> None:
    sketch = Sketch()
    sketch.buffer([2], "constant", content=b"\0" * 8)
    with pytest.raises(UnavailableError, match="is corrupt"):
        sketch.program(artifacts=lambda _: b"\1" * 8)


def test_code_for_another_machine_is_refused() -> None:
    content = bytearray(compile_object(DOUBLE))
    content[18:20] = b"\xf3\x00"
    compiled, artifacts = with_object(bytes(content))
    with pytest.raises(DeviceError, match="code is for riscv and this machine is"):
        Program(compiled, artifacts.__getitem__)


def test_a_function_that_is_no_kernels_is_named() -> None:
    ir = "declare void @no_such_function()\ndefine void @caller(ptr %b, ptr %v, i64 %f, i64 %l) {\n"
    ir += "  call void @no_such_function()\n  ret void\n}\n"
    with pytest.raises(DeviceError, match="calls no_such_function, which no kernel needs"):
        one_kernel(ir, "caller").program()


@pytest.mark.parametrize("content", [b"", b"not an object", b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 100])
def test_bytes_that_are_no_object_are_refused(content: bytes) -> None:
    compiled, artifacts = with_object(content)
    with pytest.raises(DeviceError):
        Program(compiled, artifacts.__getitem__)


def test_a_truncated_object_is_refused() -> None:
    content = compile_object(DOUBLE)
    for length in (50, 64, len(content) // 2, len(content) - 8):
        compiled, artifacts = with_object(content[:length])
        with pytest.raises(DeviceError):
            Program(compiled, artifacts.__getitem__)


def test_an_entry_that_the_object_lacks_is_named() -> None:
    sketch = one_kernel()
    kernel = sketch.kernels[0].model_copy(update={"entry": "missing_entry"})
    sketch.kernels[0] = kernel
    with pytest.raises(DeviceError, match="has no function missing_entry"):
        sketch.program()


def test_a_kernel_without_object_code_is_refused() -> None:
    sketch = one_kernel()
    sketch.kernels[0] = sketch.kernels[0].model_copy(update={"artifact": None, "src": "define …"})
    with pytest.raises(DeviceError, match="kernel double_it has no object code"):
        sketch.program()


def test_another_version_of_the_abi_is_refused() -> None:
    sketch = one_kernel()
    with pytest.raises(DeviceError, match="ABI 5"):
        Program(sketch.compiled().model_copy(update={"abi": 5}), sketch.artifacts.__getitem__)
    sketch.kernels[0] = sketch.kernels[0].model_copy(update={"abi": 3})
    with pytest.raises(DeviceError, match="kernel double_it has the ABI 3"):
        sketch.program()


def test_a_grid_of_two_dimensions_is_refused_on_the_host() -> None:
    sketch = one_kernel()
    sketch.kernels[0] = sketch.kernels[0].model_copy(update={"global_size": (2, 3, 1)})
    with pytest.raises(CallBoundsError, match=r"the grid \(2, 3, 1\); a CPU kernel has one dimension"):
        sketch.program()(np.zeros(4, np.float32), n=4)


def test_an_object_says_which_symbols_it_needs() -> None:
    needs = object_needs(compile_object(EXP))
    assert "expf" in needs.undefined
    assert "exponential" not in needs.undefined


def test_an_object_for_another_processor_says_so() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(DOUBLE)
    machine = llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine(reloc="pic")
    needs = object_needs(cast(bytes, machine.emit_object(module)))
    assert needs.machine == "aarch64"


def test_programs_with_the_same_object_share_its_code() -> None:
    sketch = one_kernel()
    (digest,) = sketch.artifacts
    first, second = sketch.program(), sketch.program()
    assert load_object(sketch.artifacts[digest], digest) is load_object(sketch.artifacts[digest], digest)
    del first, second
