"""Landlock confines with every version that a kernel may have, and its absence is told."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from service.sandbox import landlock, paths

from .boxes import needs_landlock

CONFINED = """
import os, socket, sys
from pathlib import Path
from service.sandbox import confine, landlock
own, other, abi = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
with socket.create_server(("127.0.0.1", 0)) as server:
    confine.renounce_privileges()
    landlock.restrict(abi, [], [own])
    def tried(attempt):
        try:
            attempt()
        except OSError as error:
            return error.errno
        return 0
    (own / "kept").write_text("kept")
    print([
        tried(lambda: (own / "kept").read_text()),
        tried(lambda: (own / "kept").rename(own / "moved")),
        tried(lambda: (other / "planted").read_text()),
        tried(lambda: os.listdir(other)),
        tried(lambda: (other / "planted").write_text("")),
        tried(lambda: (other / "planted").unlink()),
        tried(lambda: (other / "planted").rename(own / "stolen")),
        tried(lambda: os.mkfifo(own / "pipe")),
        tried(lambda: os.symlink("/", own / "link")),
        tried(lambda: os.truncate(other / "planted", 0)),
        tried(lambda: socket.socket().connect(server.getsockname())),
        tried(lambda: os.kill(os.getppid(), 0)),
    ])
"""


@needs_landlock
@pytest.mark.parametrize("abi", range(1, landlock.support().abi + 1))
def test_each_version_confines_by_the_rights_that_it_knows(tmp_path: Path, abi: int) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    for folder in (own, other):
        folder.mkdir()
    (other / "planted").write_text("planted")
    done = subprocess.run(
        [sys.executable, "-c", CONFINED, str(own), str(other), str(abi)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    no = errno.EACCES
    assert done.stdout.strip() == str(
        [
            *(0, 0, no, no, no, no, no, no, no),
            no if abi >= 3 else 0,
            no if abi >= 4 else 0,
            errno.EPERM if abi >= 6 else 0,
        ]
    )
    assert (other / "planted").read_text() == ("planted" if abi >= 3 else "")


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOSYS, "the kernel has no Landlock"),
        (errno.EOPNOTSUPP, "Landlock is not enabled at boot"),
        (errno.EPERM, "the kernel refuses Landlock: Operation not permitted"),
    ],
)
def test_a_kernel_without_it_says_why(monkeypatch: pytest.MonkeyPatch, number: int, reason: str) -> None:
    def refuse(*_arguments: object) -> int:
        raise OSError(number, "Operation not permitted")

    monkeypatch.setattr(landlock, "_call", refuse)
    assert landlock.support() == landlock.Support(0, reason)


def test_a_job_may_read_what_it_runs_and_not_where_the_service_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    readable = paths.readable()

    def can_read(path: str | Path) -> bool:
        return any(Path(path).resolve().is_relative_to(allowed) for allowed in readable)

    assert can_read(paths.__file__)
    assert can_read(pytest.__file__)
    assert not any(can_read(path) for path in (tmp_path, "/etc/shadow", "/proc/1", "/tmp", Path.home() / ".ssh", "/"))
    assert all(not path.is_relative_to(other) for path in readable for other in readable if path != other)
