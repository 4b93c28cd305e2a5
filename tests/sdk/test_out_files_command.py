"""The files that `kiln compile` and `kiln run` write: whole, or what was there before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

from tests.forked import Forked
from tests.sdk.conftest import Kiln

BEFORE = b"what an earlier run has written"
Small: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]
"""Runs the command so that no file can be larger than that many bytes."""


@pytest.fixture
def small(tmp_path: Path, served: str, graph_file: Path, forked: Forked) -> Small:
    def run(most: int, *arguments: str) -> subprocess.CompletedProcess[str]:
        own = {"KILN_URL": served, "KILN_HOME": str(tmp_path / "home"), "NO_COLOR": "1", "COLUMNS": "200"}
        environment, directory = {**os.environ, **own}, graph_file.parent
        return forked.run("tensorkiln.cli", *arguments, cwd=directory, env=environment, file_bytes=most)

    return run


def test_programs_that_cannot_be_written_leave_those_of_before(small: Small, tmp_path: Path) -> None:
    (tmp_path / "out.json").write_bytes(BEFORE)
    failed = small(1000, "compile", "layer.json", "-o", "out.json")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert (
        failed.stderr == "error[file]: 'out.json' cannot be written: File too large; make room, or write elsewhere.\n"
    )
    assert (tmp_path / "out.json").read_bytes() == BEFORE
    assert not list(tmp_path.glob(".out.json*"))


def test_code_that_cannot_be_written_leaves_that_of_before(small: Small, kiln: Kiln, tmp_path: Path) -> None:
    assert kiln("compile", "layer.json", "--artifacts", "code").returncode == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "code").iterdir()}
    failed = small(100, "compile", "layer.json", "--artifacts", "code")
    assert failed.returncode == 2
    assert "cannot be written: File too large" in failed.stderr
    assert {path.name: path.read_bytes() for path in (tmp_path / "code").iterdir()} == before


@pytest.mark.parametrize("name", ["out.npy", "out.npz"])
def test_outputs_that_cannot_be_written_leave_those_of_before(small: Small, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(BEFORE)
    done = small(40_000, "run", "layer.json", "--random", "0", "-s", "n=64", "-o", name)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / name).read_bytes() != BEFORE
    (tmp_path / name).write_bytes(BEFORE)
    failed = small(500, "run", "layer.json", "--random", "0", "-s", "n=64", "-o", name)
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr.startswith(f"error[file]: '{name}' cannot be written: ")
    assert failed.stderr.count("\n") == 1
    assert (tmp_path / name).read_bytes() == BEFORE


def test_a_file_keeps_its_permissions_and_a_new_one_has_those_of_the_user(
    served: str, graph_file: Path, tmp_path: Path
) -> None:
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


def test_what_is_no_regular_file_is_written_to_as_it_is(kiln: Kiln, graph_file: Path, tmp_path: Path) -> None:
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
