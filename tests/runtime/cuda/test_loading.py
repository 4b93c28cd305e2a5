"""Which code is loaded on which device, and what is refused before anything is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tensorkiln.buffers import Buffer
from tensorkiln.dtypes import DType
from tensorkiln.errors import CallInputError, DeviceError, UnavailableError
from tensorkiln.expr import symbol
from tensorkiln.program import Program
from tensorkiln.target import Target
from tests.runtime.cuda.kernels import DOUBLE, INCREMENT
from tests.runtime.cuda.sketch import CudaSketch
from tests.runtime.sketch import Sketch
from tests.runtime.test_items import transfer
from tests.simt.driver import HOPPER, EmulatedDriver

N = symbol("n")
CUBIN = b"\x7fELF what ptxas made"


def one_kernel(ir: str = DOUBLE, target: str = "cuda:sm_90", **fields: Any) -> CudaSketch:
    sketch = CudaSketch(symbols={"n": (0, 1000)}, target=Target.parse(target))
    x, out = sketch.buffer([N], "input"), sketch.buffer([N], "output")
    sketch.elementwise(ir, "double_it", [x, out], **fields)
    return sketch


def with_binary(target: str) -> CudaSketch:
    sketch = one_kernel(target=target)
    sketch.kernels[0] = sketch.kernels[0].model_copy(update={"binary": sketch.store(CUBIN)})
    sketch.ir[CUBIN] = DOUBLE
    return sketch


def loaded_on(sketch: CudaSketch, capability: tuple[int, int]) -> list[bytes]:
    """What is loaded on a device of this compute capability."""
    driver = sketch.driver(properties=replace(HOPPER, capability=capability))
    assert sketch.gpu_program(driver)(np.ones(3, np.float32), n=3)[0].numpy().tolist() == [2, 2, 2]
    return driver.log.loaded


def test_a_cubin_of_the_device_is_preferred() -> None:
    assert loaded_on(with_binary("cuda:sm_90"), (9, 0)) == [CUBIN]
    assert loaded_on(with_binary("cuda:sm_90a"), (9, 0)) == [CUBIN]


def test_another_device_gets_the_ptx() -> None:
    for capability in ((10, 0), (12, 0)):
        (code,) = loaded_on(with_binary("cuda:sm_90"), capability)
        assert b".entry double_it" in code
    (code,) = loaded_on(with_binary("cuda:sm_80"), (8, 6))
    assert b".target sm_80" in code


@pytest.mark.parametrize(
    ("target", "capability"),
    [("cuda:sm_90", (8, 0)), ("cuda:sm_90a", (10, 0)), ("cuda:sm_90a", (8, 9)), ("cuda:sm_100f", (12, 0))],
)
def test_a_device_that_cannot_run_the_code_is_named(target: str, capability: tuple[int, int]) -> None:
    sketch = one_kernel()
    sketch.target = Target.parse(target)
    driver = sketch.driver(properties=replace(HOPPER, capability=capability))
    major, minor = capability
    arch = target.partition(":")[2]
    with pytest.raises(
        DeviceError, match=f"is for {arch} and the GPU .* is sm_{major}{minor}; compile it for"
    ) as caught:
        sketch.gpu_program(driver)(np.ones(3, np.float32), n=3)
    assert caught.value.details == {"program": arch, "device": f"sm_{major}{minor}"}
    assert driver.log.loaded == []


def test_programs_on_one_device_share_the_code_and_another_device_loads_it_again() -> None:
    sketch = one_kernel()
    driver, other = sketch.driver(), sketch.driver(ordinal=1)
    programs = [sketch.gpu_program(driver) for _ in range(3)]
    results = [program(np.ones(3, np.float32), n=3)[0].numpy().sum() for program in programs]
    assert results == [6, 6, 6]
    assert len(driver.log.loaded) == 1
    sketch.gpu_program(other)(np.ones(3, np.float32), n=3)
    assert len(other.log.loaded) == 1
    programs.clear()
    assert driver.log.unloaded == 1


def test_kernels_of_one_module_are_found_in_it() -> None:
    sketch = CudaSketch(symbols={"n": (0, 1000)})
    x, between, out = sketch.buffer([N], "input"), sketch.buffer([N]), sketch.buffer([N], "output")
    both = DOUBLE + INCREMENT[INCREMENT.index("define") :]
    sketch.elementwise(both, "double_it", [x, between])
    sketch.elementwise(both, "increment", [between, out])
    driver = sketch.driver()
    assert sketch.gpu_program(driver)(np.ones(3, np.float32), n=3)[0].numpy().tolist() == [3, 3, 3]
    assert len(driver.log.loaded) == 1


def test_a_kernel_that_the_code_lacks_is_named() -> None:
    sketch = one_kernel()
    sketch.kernels[0] = sketch.kernels[0].model_copy(update={"entry": "missing"})
    with pytest.raises(DeviceError, match="has no kernel missing"):
        sketch.gpu_program()(np.ones(3, np.float32), n=3)


def test_code_that_the_driver_refuses_is_an_error_of_every_call() -> None:
    sketch = one_kernel()
    driver = EmulatedDriver({})
    program = Program(sketch.compiled(), sketch.artifacts.__getitem__, device=driver)
    for _ in range(2):
        with pytest.raises(DeviceError, match="INVALID_PTX"):
            program(np.ones(3, np.float32), n=3)


def test_code_that_calls_what_the_driver_has_is_not_loaded() -> None:
    sketch = one_kernel()
    (artifact,) = (kernel.artifact for kernel in sketch.kernels)
    ptx = sketch.artifacts[artifact or ""]
    hostile = ptx.replace(b".visible", b".extern .func (.param .b32 r) vprintf (.param .b64 f);\n.visible", 1)
    sketch.kernels[0] = sketch.kernels[0].model_copy(update={"artifact": sketch.store(hostile)})
    driver = sketch.driver()
    with pytest.raises(DeviceError, match=r"has a part that no kernel has: \.extern \.func .* vprintf") as caught:
        sketch.gpu_program(driver)(np.ones(3, np.float32), n=3)
    assert caught.value.details == {"problems": [".extern .func (.param .b32 r) vprintf (.param .b64 f)"]}
    assert driver.log.loaded == []


def test_an_artifact_with_other_bytes_is_refused_when_loading() -> None:
    for role in ("code", "binary", "constant"):
        sketch = with_binary("cuda:sm_90")
        sketch.buffer([2], "constant", content=b"12345678")
        digests = {
            "code": sketch.kernels[0].artifact,
            "binary": sketch.kernels[0].binary,
            "constant": sketch.buffers[-1].artifact,
        }
        sketch.artifacts[digests[role] or ""] += b"!"
        with pytest.raises(UnavailableError, match=f"artifact {digests[role]} is corrupt"):
            sketch.gpu_program()


@pytest.mark.parametrize(
    ("update", "message"),
    [
        ({"abi": 3}, "kernel double_it has the ABI 3"),
        ({"artifact": None}, "kernel double_it has no code"),
        ({"local_size": None}, "kernel double_it has no local_size"),
    ],
)
def test_a_kernel_that_is_none_of_a_gpu_is_refused_when_loading(update: dict[str, Any], message: str) -> None:
    sketch = one_kernel()
    sketch.kernels[0] = sketch.kernels[0].model_copy(update=update)
    with pytest.raises(DeviceError, match=message):
        sketch.gpu_program()


def test_a_program_of_another_abi_is_refused() -> None:
    sketch = one_kernel()
    compiled = sketch.compiled().model_copy(update={"abi": 5})
    with pytest.raises(DeviceError, match="the program has the ABI 5"):
        Program(compiled, sketch.artifacts.__getitem__, device=sketch.driver())


def test_scratch_and_wide_alignments_are_refused() -> None:
    sketch = one_kernel()
    sketch.buffer([4], "scratch")
    with pytest.raises(DeviceError, match="buffer 2 is scratch, which a GPU has not"):
        sketch.gpu_program()
    wide = Buffer(id=2, dtype=DType.FLOAT32, shape=(4,), size_bytes=16, role="temp", lifetime=(0, 0), alignment=512)
    sketch.buffers[2] = wide
    with pytest.raises(DeviceError, match="buffer 2 needs an alignment of 512; here it is 256"):
        sketch.gpu_program()


def test_items_for_other_devices_are_refused() -> None:
    sketch = CudaSketch(symbols={"n": (0, 100)})
    sketch.operations.append(
        transfer(sketch.buffer([N], "input"), sketch.buffer([N], "output"), dst_device="ROCM", src_device="CUDA")
    )
    with pytest.raises(DeviceError, match="item 0 needs the device ROCM; this runtime has CPU and CUDA only"):
        sketch.gpu_program()
    host = Sketch(symbols={"n": (0, 100)}, target=Target.parse("cuda:sm_90"))
    host.launch("define void @k(ptr %b, ptr %v, i64 %f, i64 %l) {\n  ret void\n}", "k", [host.buffer([N], "output")])
    host.kernels[0] = host.kernels[0].model_copy(update={"local_size": (1, 1, 1)})
    with pytest.raises(DeviceError, match="item 0 needs the device CPU; this runtime has CUDA only"):
        host.program()


class CoreStream:
    """A stream as cuda.core has it."""

    def __init__(self, handle: int, version: int = 0) -> None:
        self.handle, self.version = handle, version

    def __cuda_stream__(self) -> tuple[int, int]:
        return self.version, self.handle


def test_a_program_runs_on_the_stream_that_it_is_given() -> None:
    sketch = one_kernel()
    driver = sketch.driver()
    with driver.scope():
        stream = driver.create_stream()
    program = sketch.gpu_program(driver)

    class Attribute:
        __cuda_stream__ = (0, stream)

    for given in (stream, CoreStream(stream), Attribute()):
        there = program.on(given)
        (result,) = there(np.ones(3, np.float32), n=3)
        assert driver.pending(stream) > 0
        assert result.__cuda_array_interface__["stream"] == stream
        assert result.numpy().tolist() == [2, 2, 2]
    bound = program.on(stream).bind({100: np.ones(3, np.float32)})
    assert bound(n=3)[0].ready.stream.handle == stream


def test_a_stream_may_be_given_by_a_program_to_another() -> None:
    sketch = one_kernel()
    driver = sketch.driver()
    first, second = sketch.gpu_program(driver), sketch.gpu_program(driver)
    (result,) = first(np.ones(3, np.float32), n=3)
    assert second.on(result.ready.stream)(result, n=3)[0].numpy().tolist() == [4, 4, 4]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("stream", "a str is not a CUDA stream"),
        (True, "a bool is not"),
        (CoreStream(5, 1), "version 1 of the CUDA stream"),
    ],
)
def test_objects_other_than_streams_are_refused(given: object, message: str) -> None:
    with pytest.raises(CallInputError, match=message):
        one_kernel().gpu_program().on(given)


def test_a_program_of_the_host_has_neither_stream_nor_device() -> None:
    sketch = Sketch()
    sketch.bind(sketch.buffer([3], "input"), sketch.outputs)
    with pytest.raises(DeviceError, match="is for the CPU and cannot run on the stream 0"):
        sketch.program().on(0)
    with pytest.raises(DeviceError, match="is for the CPU, which has no device number"):
        Program(sketch.compiled(), sketch.artifacts.__getitem__, device=0)
