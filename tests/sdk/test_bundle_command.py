"""`kiln compile --bundle` and `kiln run` of what it wrote."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tensorkiln import Graph, reference
from tensorkiln.bundle import read_bundle
from tensorkiln.errors import DeviceError
from tensorkiln.runtime.cuda import open_driver
from tests.codegen.assemblers import needs_ptxas
from tests.sdk.conftest import Kiln, complaint, succeeded

pytestmark = pytest.mark.usefixtures("graph_file")


def test_a_bundle_runs_where_there_is_no_service(kiln: Kiln, tmp_path: Path, layer: Graph) -> None:
    succeeded(kiln("compile", "layer.json", "--target", "cpu:native", "--bundle", "layer.kiln"))
    made = read_bundle(tmp_path / "layer.kiln")
    assert [symbol.name for symbol in made.program.symbols] == ["n"]
    assert made.artifacts.keys() == made.program.artifacts
    nowhere = "http://127.0.0.1:1"
    ran = succeeded(kiln("run", "layer.kiln", "--random", "3", "--symbol", "n=5", "--out", "out.npz", url=nowhere))
    assert "kernel_0" in ran
    generator = np.random.default_rng(3)
    shapes = [(5, 8), (8, 3)]
    arrays = [generator.standard_normal(shape).astype(np.float32) for shape in shapes]
    (expected,) = reference.evaluate(layer, *arrays, n=5)
    with np.load(tmp_path / "out.npz") as outputs:
        np.testing.assert_allclose(outputs["output_0"], expected, rtol=1e-5)
    refused = complaint(kiln("run", "layer.kiln", "--random", "0", "--symbol", "n=5", "--fast-math"), 2)
    assert "a bundle is compiled already" in refused


def test_a_bundle_for_a_gpu_is_made_where_there_is_none(kiln: Kiln, tmp_path: Path) -> None:
    assert kiln("compile", "layer.json", "-t", "cuda:sm_90", "--bundle", "gpu.kiln").returncode == 0
    made = read_bundle(tmp_path / "gpu.kiln")
    (code,) = {kernel.artifact for kernel in made.program.kernels}
    assert b".target sm_90" in made.artifacts[code or ""]
    try:
        open_driver()
    except DeviceError:
        refused = complaint(kiln("run", "gpu.kiln", "--random", "0", "--symbol", "n=5"), 6)
        assert refused.startswith("error[device.unavailable]: running a CUDA program needs")


@needs_ptxas
def test_a_bundle_may_hold_assembled_code(kiln: Kiln, tmp_path: Path) -> None:
    succeeded(kiln("compile", "layer.json", "-t", "cuda:sm_90", "--cubin", "--bundle", "gpu.kiln"))
    made = read_bundle(tmp_path / "gpu.kiln")
    (binary,) = {kernel.binary for kernel in made.program.kernels}
    assert made.artifacts[binary or ""].startswith(b"\x7fELF")


@pytest.mark.parametrize(
    "arguments",
    [
        ("compile", "layer.json", "-t", "cpu", "-t", "cpu:aarch64", "--bundle", "both.kiln"),
        ("compile", "layer.json", "--bundle", "layer.zip"),
    ],
)
def test_a_bundle_is_for_one_target_and_has_its_suffix(kiln: Kiln, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert "holds one program" in complaint(kiln(*arguments), 2)
    assert not list(tmp_path.glob("*.kiln"))


def test_a_file_that_is_no_bundle_is_one_line_and_wrong_usage(kiln: Kiln, tmp_path: Path) -> None:
    (tmp_path / "bad.kiln").write_text("{}")
    refused = complaint(kiln("run", "bad.kiln", "--random", "0"), 2)
    assert refused == "error[request.invalid]: bad.kiln is not a bundle: File is not a zip file\n"
