"""The files that `kiln compile` and `kiln run` write, bundles among them: whole, or what was there before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from tensorkiln import Graph, reference
from tensorkiln.bundle import read_bundle
from tensorkiln.errors import DeviceError
from tensorkiln.runtime.cuda import open_driver
from tests.codegen.assemblers import needs_ptxas
from tests.sdk.conftest import Kiln, complaint, one_line, succeeded

BEFORE = b"what an earlier run has written"
pytestmark = pytest.mark.usefixtures("graph_file")
COMPILE, RUN = ("compile", "layer.json"), ("run", "layer.json", "--random", "0", "-s", "n=64")


@pytest.mark.parametrize(
    ("name", "command", "said"),
    [
        ("out.json", COMPILE, "File too large; make room, or write elsewhere.\n"),
        ("out.npy", RUN, ""),
        ("out.npz", RUN, ""),
    ],
)
def test_an_output_that_cannot_be_written_leaves_that_of_before(
    kiln: Kiln, tmp_path: Path, name: str, command: tuple[str, ...], said: str
) -> None:
    assert kiln(*command, "-o", name, file_bytes=40_000).returncode == 0
    assert (tmp_path / name).exists()
    (tmp_path / name).write_bytes(BEFORE)
    failed = one_line(kiln(*command, "-o", name, file_bytes=500), 2)
    assert failed.startswith(f"error[file]: '{name}' cannot be written: {said}")
    assert (tmp_path / name).read_bytes() == BEFORE
    assert not list(tmp_path.glob(f".{name}*"))


def test_code_that_cannot_be_written_leaves_that_of_before(kiln: Kiln, tmp_path: Path) -> None:
    assert kiln("compile", "layer.json", "--artifacts", "code").returncode == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "code").iterdir()}
    failed = complaint(kiln("compile", "layer.json", "--artifacts", "code", file_bytes=100), 2)
    assert "cannot be written: File too large" in failed
    assert {path.name: path.read_bytes() for path in (tmp_path / "code").iterdir()} == before


def test_a_file_keeps_its_permissions(served: str, graph_file: Path, tmp_path: Path) -> None:
    compiling = [sys.executable, "-W", "error", "-m", "tensorkiln.cli", "compile", graph_file.name, "--url", served]
    environment = {**os.environ, "KILN_HOME": str(tmp_path / "home")}
    (tmp_path / "old.json").write_bytes(BEFORE)
    (tmp_path / "old.json").chmod(0o640)
    mask = os.umask(0o027)
    try:
        for name in ("old.json", "new.json"):
            subprocess.run([*compiling, "-o", name], cwd=tmp_path, env=environment, check=True, timeout=120)
    finally:
        os.umask(mask)
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("old.json", "new.json")}
    assert modes == {"old.json": 0o640, "new.json": 0o640}
    assert json.loads((tmp_path / "old.json").read_text())["programs"]


def test_special_files_are_written_in_place(kiln: Kiln, graph_file: Path, tmp_path: Path) -> None:
    printed = kiln("compile", graph_file.name, "-o", "/dev/stdout")
    assert printed.returncode == 0, printed.stderr
    programs, _ = json.JSONDecoder().raw_decode(printed.stdout)
    assert len(programs["programs"]) == 1
    assert Path("/dev/stdout").is_symlink()

    (tmp_path / "link.npy").symlink_to("behind.npy")
    os.mkfifo(tmp_path / "pipe.npy")
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe.npy").read_bytes()))
    reader.start()
    for name in ("link.npy", "pipe.npy"):
        assert kiln("run", graph_file.name, "--random", "0", "-s", "n=2", "-o", name).returncode == 0
    reader.join(30)
    assert np.load(tmp_path / "behind.npy").shape == (2, 3)
    assert received == [(tmp_path / "behind.npy").read_bytes()]

    (tmp_path / "folder").mkdir()
    refused = kiln("compile", graph_file.name, "-o", "folder")
    assert (refused.returncode, refused.stderr) == (
        2,
        "error[file]: 'folder' cannot be written: Is a directory; make room, or write elsewhere.\n",
    )


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
