"""Hand-written kernels with invalid accesses, and the message for each."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from passes.compile import Compilation
from tensorkiln.buffers import BufferRole
from tensorkiln.dtypes import DType
from tensorkiln.expr import mul, symbol
from tests import checked
from tests.checked import CheckedFault
from tests.checked.trap import SAYS_STORES
from tests.runtime.kernels import DOUBLE, INCREMENT, elementwise, triangle_with_scratch
from tests.runtime.sketch import Sketch

VALUES = np.arange(10, dtype=np.float32)

pytestmark = pytest.mark.skipif(not SAYS_STORES, reason="this processor does not say whether an access was a store")

N = symbol("n")
AT_END, AT_START = "every buffer ends at a guard", "every buffer begins at a guard"


def body(text: str) -> str:
    """LLVM IR of a kernel `wrong` with a float input and a float output."""
    return f"""
define void @wrong(ptr %buffers, ptr %vals, i64 %first, i64 %last) {{
  %slot = getelementptr ptr, ptr %buffers, i64 1
  %in = load ptr, ptr %buffers
  %out = load ptr, ptr %slot
{text}
  ret void
}}
"""


def stores(element: int, slot: str = "out") -> str:
    return body(f"  %to = getelementptr float, ptr %{slot}, i64 {element}\n  store volatile float 1.0, ptr %to")


def loads(element: int) -> str:
    return body(f"  %from = getelementptr float, ptr %in, i64 {element}\n  %x = load volatile float, ptr %from")


def compiled(sketch: Sketch) -> Compilation:
    return Compilation(sketch.compiled(), sketch.artifacts)


def one_kernel(ir: str, role: BufferRole = "output") -> Compilation:
    sketch = Sketch()
    sketch.launch(ir, "wrong", [sketch.buffer([10], "input"), sketch.buffer([10], role)])
    return compiled(sketch)


def fault_of(compilation: Compilation, *arrays: Any, threads: int = 1, **symbols: int) -> CheckedFault:
    with pytest.raises(CheckedFault) as caught:
        checked.run(compilation, *arrays, threads=threads, **symbols)
    return caught.value


IN, OUT = "buffer 0 (input float32 [10], 40 bytes)", "buffer 1 (output float32 [10], 40 bytes)"
NO_ADDRESS = body("  %x = load volatile <4 x float>, ptr %out, align 16")
NULL = body("  store volatile float 1.0, ptr inttoptr (i64 8 to ptr)")
TRAP = "declare void @llvm.trap()" + body("  call void @llvm.trap()")


@pytest.mark.parametrize(
    ("ir", "said"),
    [
        (stores(10), f"stores 0 bytes behind the end of {OUT} in work-group 0, where {AT_END}"),
        (stores(12), f"stores 8 bytes behind the end of {OUT}"),
        (stores(1 << 20), f"stores 4194264 bytes behind the end of {OUT}"),
        (stores(-1), f"has changed memory 1 byte before the start of {OUT}, where {AT_END}"),
        (stores(-2000), f"stores 8000 bytes before the start of {OUT}"),
        (loads(10), f"loads 0 bytes behind the end of {IN} in work-group 0, where {AT_END}"),
        (loads(-1), f"loads 4 bytes before the start of {IN} in work-group 0, where {AT_START}"),
        (stores(3, "in"), f"stores at byte 12 of {IN}, which it only reads"),
        (NULL, "stores at 0x8, near no buffer"),
        (NO_ADDRESS, "raised SIGSEGV (an aligned access to what is not aligned"),
        (TRAP, "raised SIGILL (no access to memory)"),
    ],
)
def test_an_access_that_is_not_allowed_is_told(ir: str, said: str) -> None:
    fault = fault_of(one_kernel(ir), VALUES)
    assert str(fault).startswith(f"wrong {said}"), fault
    assert fault.kernel == "wrong"


def test_a_fault_has_its_buffer_and_the_byte() -> None:
    for ir, buffer, offset in ((stores(12), 1, 48), (loads(-1), 0, -4), (stores(-1), 1, -1), (stores(3, "in"), 0, 12)):
        fault = fault_of(one_kernel(ir), VALUES)
        assert (fault.buffer, fault.offset) == (buffer, offset)


def test_work_goes_on_after_a_fault() -> None:
    sketch = Sketch(symbols={"n": (0, 1000)})
    sketch.elementwise(DOUBLE, "double_it", [sketch.buffer([N], "input"), sketch.buffer([N], "output")])
    right = compiled(sketch)
    for size in (0, 1, 10, 999):
        fault_of(one_kernel(stores(10)), VALUES)
        values = np.arange(size, dtype=np.float32)
        (result,) = checked.run(right, values, threads=3, n=size)
        np.testing.assert_array_equal(result, values * 2)


def test_a_change_of_a_part_that_the_kernel_was_not_given_is_told() -> None:
    sketch = Sketch(symbols={"n": (1, 1000)})
    x = sketch.buffer([N], "input")
    sketch.buffer([2 * N], "output", alias_group=7)
    low = sketch.buffer([N], alias_group=7)
    high = sketch.buffer([N], alias_group=7, offset=mul(4, N))
    sketch.elementwise(INCREMENT, "increment", [x, high])
    sketch.launch(stores(10), "wrong", [x, low])
    fault = fault_of(compiled(sketch), VALUES + 5, n=10)
    assert "wrong has changed memory 2 bytes behind the end of buffer 2 (temp float32 [10], 40 bytes)" in str(fault)
    assert (fault.kernel, fault.buffer, fault.offset) == ("wrong", 2, 42), "6.0 and 1.0 have two bytes in common"


def test_a_read_of_unwritten_memory_is_reported() -> None:
    unwritten = Sketch()
    unwritten.launch(stores(3), "wrong", [unwritten.buffer([10], "input"), unwritten.buffer([10], "output")])
    fault = fault_of(compiled(unwritten), VALUES)
    assert str(fault).startswith("output 0: 9 of 10 elements depend on where buffers lie, on the order of work-groups")

    read = Sketch(symbols={"n": (1, 1000)})
    temp = read.buffer([N])
    read.elementwise(DOUBLE, "double_it", [temp, read.buffer([N], "output", DType.FLOAT32)])
    assert "10 of 10 elements depend" in str(fault_of(compiled(read), n=10))


def sums(count: int, elements: int, groups: int) -> Compilation:
    sketch = Sketch()
    out, scratch = sketch.buffer([groups], "output", DType.INT64), sketch.buffer([elements], "scratch", DType.INT64)
    sketch.launch(triangle_with_scratch(count), "triangle", [out, scratch], outs=(0, 1), groups=groups)
    return compiled(sketch)


@pytest.mark.parametrize("threads", [1, 4])
def test_each_worker_has_scratch_of_its_own(threads: int) -> None:
    expected = [sum(range(group * 50, group * 50 + 50)) for group in range(99)]
    for seed in range(5):
        (result,) = checked.run(sums(50, 50, 99), seed=seed, threads=threads)
        np.testing.assert_array_equal(result, expected)
    fault = fault_of(sums(50, 49, 99), threads=threads)
    assert str(fault).startswith("triangle stores 0 bytes behind the end of buffer 1 (scratch int64 [49], 392 bytes)")


def test_a_sum_over_work_groups_that_depends_on_their_order_is_told() -> None:
    # Each element is its predecessor plus one; every sixteenth reads an element of another work-group.
    text = """
  %before = sub i64 %i, 1
  %is_first = icmp eq i64 %i, 0
  %place = select i1 %is_first, i64 0, i64 %before
  %o = getelementptr float, ptr %p1, i64 %place
  %old = load float, ptr %o
  %y = fadd float %old, %x0"""
    sketch = Sketch(symbols={"n": (1, 1000)})
    x, out = sketch.buffer([N], "input"), sketch.buffer([N], "output")
    sketch.elementwise(DOUBLE, "double_it", [x, out])
    sketch.elementwise(elementwise("prefix", 1, text), "prefix", [x, out])
    fault = fault_of(compiled(sketch), np.ones(500, np.float32), n=500)
    assert "depend on where buffers lie, on the order of work-groups" in str(fault)


def test_a_fault_outside_of_kernels_ends_the_process_as_it_would_without_the_check() -> None:
    script = """
import ctypes, faulthandler
from tests.checked.trap import trap
faulthandler.enable()
with trap().set():
    ctypes.string_at(8)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in done.stderr
