"""Directories are removed as far as they can be, without an error, and nothing beside them."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from service.sandbox import confine
from service.sandbox.scratch import removal, remove


def test_all_that_is_in_a_directory_goes_and_what_it_points_to_stays(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    kept.chmod(0o500)
    doomed = tmp_path / "doomed"
    (doomed / "a" / "b" / "c").mkdir(parents=True)
    (doomed / "a" / "empty").mkdir()
    for place in (doomed, doomed / "a", doomed / "a" / "b"):
        (place / "link").symlink_to(kept)
        (place / "dangling").symlink_to("nowhere")
        (place / "\udcff\n").touch()
        os.mkfifo(place / "fifo")
        os.link(kept / "file", place / "hard")
    remove(doomed)
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept"]
    assert [entry.name for entry in kept.iterdir()] == ["file"]
    assert kept.stat().st_mode & 0o777 == 0o500


def test_a_directory_is_removed_one_file_at_a_time(tmp_path: Path) -> None:
    doomed = tmp_path / "doomed"
    (doomed / "inner" / "most").mkdir(parents=True)
    for number in range(8):
        (doomed / f"{number}").touch()
    steps = removal(doomed)
    for left in range(8, -1, -1):
        assert len([path for path in doomed.iterdir() if path.is_file()]) >= left
        next(steps)
    assert list(steps) == []
    assert not doomed.exists()
    assert list(removal(doomed)) == []


def test_a_file_in_place_of_a_directory_is_no_error(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (tmp_path / "link").symlink_to(kept)
    (tmp_path / "file").touch()
    for name in ("link", "file", "nothing"):
        remove(tmp_path / name)
    assert {entry.name for entry in tmp_path.iterdir()} == {"kept", "link", "file"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of somebody else")
def test_a_directory_that_cannot_be_removed_is_no_error(tmp_path: Path) -> None:
    doomed = tmp_path / "doomed"
    foreign = doomed / "mine" / "foreign"
    foreign.mkdir(parents=True)
    (foreign / "file").touch()
    (doomed / "mine" / "file").touch()
    os.chown(foreign, 54321, -1)

    def without_privileges() -> None:
        confine.renounce_privileges()
        remove(doomed)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(without_privileges).result()
    assert [path.relative_to(doomed).as_posix() for path in doomed.rglob("*")] == [
        "mine",
        "mine/foreign",
        "mine/foreign/file",
    ]
