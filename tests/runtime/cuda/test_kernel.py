"""Single kernels, as a device runs them."""

from __future__ import annotations

import numpy as np
import pytest

from tensorkiln.device import Device, KernelProgram
from tensorkiln.errors import CallBoundsError, CallInputError, DeviceError
from tensorkiln.launch import LaunchNode
from tensorkiln.runtime.cuda.context import Context
from tensorkiln.runtime.cuda.kernel import cuda_runtime
from tensorkiln.spec import CompiledSpec, ProgramSpec
from tests.records.toy_backend import ToyRenderer
from tests.runtime.cuda.kernels import DOUBLE, compile_ptx
from tests.simt.driver import EmulatedDriver

PTX = compile_ptx(DOUBLE)


class Assembler:
    """Gives the same kernel for everything, and counts."""

    def __init__(self) -> None:
        self.compiled = 0

    @property
    def cache_key(self) -> str:
        return "always the same"

    def compile(self, spec: ProgramSpec) -> CompiledSpec:
        self.compiled += 1
        made = CompiledSpec.from_source("double_it", PTX.decode(), "a" * 64, 2)
        return made.model_copy(update={"var_names": ("n",)})


def device(spec: str, ordinal: int, shared: Device | None = None, assembler: Assembler | None = None) -> Device:
    driver = EmulatedDriver({PTX: DOUBLE}, ordinal=ordinal)
    pool = Context.of(driver).heap.pool(slack=False, max_idle=4)
    cache = None if shared is None else shared.cache
    made = Device.new(spec, pool, ToyRenderer(spec), assembler or Assembler(), cuda_runtime(driver), cache=cache)
    drivers[made.spec] = driver
    return made


drivers: dict[str, EmulatedDriver] = {}


def doubled(made: Device, kernel: KernelProgram, values: np.ndarray) -> list[float]:
    driver = drivers[made.spec]
    with driver.scope():
        source, target = made.allocator.take(values.nbytes), made.allocator.take(values.nbytes)
    driver.memory.write(source.address, values)
    blocks = (-(-len(values) // 32), 1, 1)
    kernel.execute([source.address, target.address], [len(values)], blocks, (32, 1, 1))
    return driver.memory.read(target.address, values.nbytes).view(np.float32).tolist()


def test_a_kernel_runs_on_the_memory_of_its_device() -> None:
    made = device("CUDA", 0)
    kernel = made.load(LaunchNode())
    assert kernel.name == "double_it"
    values = np.arange(40, dtype=np.float32)
    assert doubled(made, kernel, values) == (2 * values).tolist()


def test_two_devices_of_one_kind_share_what_is_compiled_and_load_it_each() -> None:
    assembler = Assembler()
    first = device("CUDA:0", 0, assembler=assembler)
    second = device("CUDA:1", 1, shared=first, assembler=assembler)
    kernels = [made.load(LaunchNode()) for made in (first, second, first)]
    assert assembler.compiled == 1
    assert [len(drivers[made.spec].log.loaded) for made in (first, second)] == [1, 1]
    values = np.ones(5, np.float32)
    assert doubled(second, kernels[1], values) == [2] * 5


def test_wrong_counts_and_sizes_are_errors() -> None:
    kernel = device("CUDA", 0).load(LaunchNode())
    with pytest.raises(CallInputError, match="kernel double_it takes 2 buffers, got 1"):
        kernel.execute([1], [5])
    with pytest.raises(CallInputError, match="kernel double_it takes 1 values, got 0"):
        kernel.execute([1, 2], [])
    with pytest.raises(CallBoundsError, match="has 2048 as its block in x"):
        kernel.execute([1, 2], [5], (1, 1, 1), (2048, 1, 1))


def test_a_cubin_is_loaded_and_nothing_is_an_error() -> None:
    driver = EmulatedDriver({b"\x7fELF": DOUBLE})
    load = cuda_runtime(driver)
    assert load(CompiledSpec.from_bytes("double_it", b"\x7fELF", "a" * 64)).buf_count == 0
    assert driver.log.loaded == [b"\x7fELF"]
    with pytest.raises(DeviceError, match="kernel double_it has no code"):
        load(CompiledSpec(name="double_it", src=None, bytes=b"", ast="a" * 64))
