"""The files that `kiln compile` and `kiln run` write: whole, or what was there before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from tests.sdk.conftest import Kiln, complaint, one_line

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
