"""The driver through cuda.bindings, on a libcuda that is a stub: whether it is called as NVIDIA documents it.

What a GPU does with the calls is tested in `tests/gpu`, on a machine that has one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.cuda import on_stub

pytest.importorskip("cuda.bindings", reason="needs cuda-bindings")
COMPILER = shutil.which("cc") or shutil.which("gcc")
SOURCE = Path(__file__).parent / "stub" / "libcuda.c"


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stub."""
    if COMPILER is None or not sys.platform.startswith("linux"):
        pytest.skip("building the stub needs Linux and a C compiler")
    folder = tmp_path_factory.mktemp("stub")
    options = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]
    subprocess.run([COMPILER, *options, "-o", folder / "libcuda.so.1", SOURCE, "-ldl"], check=True, timeout=120)
    return folder


@pytest.mark.parametrize("name", sorted(name for name in vars(on_stub) if name.startswith("check_")))
def test_on_the_stub(stub: Path, name: str) -> None:
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(stub),
        "PYTHONPATH": os.pathsep.join(["", *sys.path]),
        "STUB_NO_DEVICE": "1" if name == "check_no_device" else "",
    }
    script = f"from tests.runtime.cuda import on_stub; on_stub.{name}()"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], env=environment, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
