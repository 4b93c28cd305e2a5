"""A CUDA program on a machine that cannot run it: the record is of use, a call says what is missing."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from tensorkiln.errors import CallBoundsError, DeviceError
from tensorkiln.expr import symbol
from tensorkiln.launch import LaunchDims
from tensorkiln.program import Program
from tests.runtime.cuda.kernels import DOUBLE
from tests.runtime.cuda.sketch import CudaSketch

N = symbol("n")


def program() -> Program:
    """A program for the GPU that this machine has, if it has one."""
    sketch = CudaSketch(symbols={"n": (0, 1000)})
    x, out = sketch.buffer([N], "input"), sketch.buffer([N], "output")
    sketch.elementwise(DOUBLE, "double_it", [x, out])
    return Program(sketch.compiled(), sketch.artifacts.__getitem__)


def test_the_record_of_a_program_needs_no_driver() -> None:
    made = program()
    assert made.compiled.kernels[0].launch_dims({"n": 100}) == LaunchDims((4, 1, 1), (32, 1, 1))
    assert made.planned_peak_bytes(n=64) == 2 * 4 * 64
    assert made.measured_peak_bytes == 0
    with pytest.raises(CallBoundsError, match="n=1001 is outside bounds"):
        made.planned_peak_bytes(n=1001)


def refuse(message: str) -> None:
    """Every use of a program fails with this message."""
    made, values = program(), np.ones(3, np.float32)
    for use in (
        lambda: made(values, n=3),
        lambda: made.bind({100: values}),
        lambda: made.profile(values, n=3),
        lambda: made.on(0),
    ):
        with pytest.raises(DeviceError, match=message):
            use()


def in_a_new_process(script: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["", *sys.path])}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"import sys\n{script}"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_without_the_package_a_call_says_what_to_install() -> None:
    message = r"needs cuda-bindings: pip install 'tensorkiln\[cuda\]'"
    in_a_new_process(
        "sys.modules['cuda.bindings'] = None\n"
        "from tests.runtime.cuda.test_without_driver import refuse\n"
        f"refuse({message!r})\n"
    )


def test_without_nvidias_driver_a_call_says_so() -> None:
    driver = pytest.importorskip("cuda.bindings.driver", reason="needs cuda-bindings")
    try:
        driver.cuInit(0)
    except RuntimeError:
        refuse(r"needs an NVIDIA GPU and its driver, and this machine has no driver \(libcuda\)")
    else:
        pytest.skip("this machine has NVIDIA's driver")


def test_importing_and_loading_imports_nothing_of_cuda() -> None:
    in_a_new_process(
        "import tensorkiln, tensorkiln.program\n"
        "from tests.runtime.cuda.test_without_driver import program\n"
        "program().planned_peak_bytes(n=3)\n"
        "assert not [name for name in sys.modules if name.split('.')[0] == 'cuda']\n"
    )
