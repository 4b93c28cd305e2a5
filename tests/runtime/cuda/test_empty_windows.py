"""Windows without elements on a GPU: what a kernel gets is the address of memory of the device, or 0."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tensorkiln import reference
from tensorkiln.errors import DeviceError
from tensorkiln.expr import Dim, symbol
from tensorkiln.program import Program
from tensorkiln.runtime.cuda import Arguments
from tensorkiln.runtime.cuda.driver import Function
from tests.compiled import compiled
from tests.runtime.cuda.foreign import WithDlpack, WithInterface
from tests.runtime.cuda.kernels import ADD, DOUBLE, THREADS
from tests.runtime.cuda.sketch import CudaSketch
from tests.runtime.empty_graphs import CASES, EmptyCase, arrays_of
from tests.runtime.test_empty_windows import NOTHING, OFFSETS, move_a_window
from tests.runtime.test_items import transfer
from tests.simt.driver import EmulatedDriver

N = symbol("n")


class WaryDriver(EmulatedDriver):
    """A device that notes the pointers of every launch, and refuses one that is outside of all memory."""

    def __init__(self, ir: dict[bytes, str]) -> None:
        super().__init__(ir, watched=True)
        self.pointers: list[list[int]] = []

    def launch(
        self,
        function: Function,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        arguments: Arguments,
        stream: int,
    ) -> None:
        kernels, name = self._functions[function.handle]
        pairs = zip(kernels.entries[name].parameters, arguments.values, strict=True)
        pointers = [value % 2**64 for parameter, value in pairs if parameter.kind == "ptr"]
        assert all(not pointer or self.owner_of(pointer) is not None for pointer in pointers), (name, pointers)
        self.pointers.append(pointers)
        super().launch(function, grid, block, shared_bytes, arguments, stream)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_graph_gives_what_the_reference_gives(case: EmptyCase) -> None:
    graph = case.graph()
    compilation = compiled(graph, "cuda:sm_80", texts=["translate"])
    code = {compilation.artifacts[kernel.artifact or ""] for kernel in compilation.program.kernels}
    driver = WaryDriver(dict.fromkeys(code, compilation.dumps["translate"]))
    called = Program(compilation.program, compilation.artifacts.__getitem__, device=driver)
    for n in case.sizes:
        arrays = arrays_of(graph, n)
        for one, other in zip(called(*arrays, n=n), reference.evaluate(graph, *arrays, n=n), strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            np.testing.assert_allclose(one.numpy(), other, rtol=1e-6)


def adding(offset: Dim, *, is_input: bool, **fields: Any) -> tuple[Program, WaryDriver]:
    """An array of 2n elements plus a window of n of them, launched at every n, and the window itself."""
    sketch = CudaSketch(symbols={"n": (0, 1000)})
    x = sketch.buffer([2 * N], "input", alias_group=0)
    whole = x
    if not is_input:
        whole = sketch.buffer([2 * N], alias_group=1)
        sketch.operations.append(transfer(x, whole, dims=(2 * N,), size_bytes=8 * N))
    window = sketch.buffer([N], alias_group=0 if is_input else 1, offset=offset)
    out = sketch.buffer([N], "output")
    sketch.bind(window, sketch.outputs)
    sketch.kernel(ADD, "add", [whole, window, out], block=(THREADS, 1, 1), var_names=("n",), **fields)
    driver = WaryDriver(sketch.ir)
    return sketch.gpu_program(driver), driver


@pytest.mark.parametrize("is_input", [True, False], ids=["input", "temporary"])
@pytest.mark.parametrize("offset", OFFSETS)
def test_a_window_is_at_the_start_of_its_storage(offset: Dim, is_input: bool) -> None:
    program, driver = adding(offset, is_input=is_input)
    results = program(NOTHING, n=0)
    assert [result.numpy().shape for result in results] == [(0,), (0,)]
    ((whole, window, _),) = driver.pointers
    assert whole == window != 0
    for result in program.bind({100: NOTHING})(n=0):
        assert result.numpy().shape == (0,)


def test_a_window_with_elements_is_at_its_offset() -> None:
    for is_input in (True, False):
        program, driver = adding(4 * N - 4, is_input=is_input)
        total, window = program(np.array([1, 2, 3, 4], np.float32), n=2)
        assert (total.numpy().tolist(), window.numpy().tolist()) == ([3, 5], [2, 3])
        ((whole, start, _),) = driver.pointers
        assert start == whole + 4


def test_an_empty_array_of_another_library_may_have_no_address() -> None:
    program, driver = adding(4 * N - 4, is_input=True)
    nothing = {"shape": (0,), "typestr": "<f4", "data": (0, False), "version": 3}
    without = SimpleNamespace(__cuda_array_interface__=nothing)
    for given in (without, WithDlpack(driver, NOTHING), WithInterface(driver, NOTHING)):
        assert program(given, n=0)[0].numpy().shape == (0,)
        assert program.bind({100: given})(n=0)[0].numpy().shape == (0,)
    assert driver.pointers[0][:2] == [0, 0]


def test_a_window_without_elements_breaks_no_demand_of_a_kernel() -> None:
    program, _ = adding(4 * N + 2, is_input=False, alignments=(16, 16, 4))
    program(NOTHING, n=0)
    with pytest.raises(DeviceError, match="needs buffer 2 at a multiple of 16 bytes, and it is at byte 6"):
        program(np.ones(2, np.float32), n=1)


def test_an_empty_window_takes_no_memory() -> None:
    program, _ = adding(1 << 40, is_input=False)
    assert program.planned_peak_bytes(n=0) == 0


def test_transfers_and_callbacks_take_windows() -> None:
    sketch = CudaSketch(symbols={"n": (0, 1000)})
    move_a_window(sketch)
    program = sketch.gpu_program()
    assert [result.numpy().shape for result in program(NOTHING, n=0)] == [(0,), (0,), (0,)]
    first, second, _ = program(np.array([1, 9, 2, 8], np.float32), n=2)
    assert (first.numpy().tolist(), second.numpy().tolist()) == ([2, 9], [9, 2])


def test_a_window_with_elements_outside_its_storage_is_refused() -> None:
    for is_input in (True, False):
        program, driver = adding(4 * N - 8, is_input=is_input)
        program(NOTHING, n=0)
        with pytest.raises(DeviceError, match="has the offset -4 and the size 4"):
            program(np.ones(2, np.float32), n=1)
        assert len(driver.pointers) == 1
    program, driver = adding(4 * N + 4, is_input=True)
    with pytest.raises(DeviceError, match="buffer 1 reaches to byte 12 of an array of 8 bytes"):
        program(np.ones(2, np.float32), n=1)
    assert driver.pointers == []


def test_an_empty_result_of_a_kernel_goes_into_the_next_call() -> None:
    sketch = CudaSketch(symbols={"n": (0, 1000)})
    sketch.buffer([2 * N], "input", alias_group=0)
    window = sketch.buffer([N], alias_group=0, offset=4 * N - 4)
    sketch.elementwise(DOUBLE, "double_it", [window, sketch.buffer([2 * N], "output")])
    program = sketch.gpu_program()
    (first,) = program(NOTHING, n=0)
    assert program(first, n=0)[0].numpy().shape == (0,)
