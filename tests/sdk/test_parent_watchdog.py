from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.sandbox.processes import alive
from tests.service.server import await_end

needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="reads the state of a process from /proc")

WATCHED = [sys.executable, "-m", "tensorkiln.parent_watchdog"]

# Starts a watched server from a thread that ends at once, says its process id, and waits to be killed.
PARENT = textwrap.dedent(
    f"""
    import subprocess, sys, threading, time
    started = []
    def start():
        command = {WATCHED!r} + [sys.argv[1], "http.server", "0", "--bind", "127.0.0.1"]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True))
    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    print(started[0].pid, flush=True)
    time.sleep(60)
    """
)


@needs_proc
def test_a_watched_module_outlives_the_thread_that_started_it_but_not_a_killed_parent(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with subprocess.Popen([sys.executable, "-c", PARENT, str(folder)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            time.sleep(0.5)
            assert alive(child)
        finally:
            parent.send_signal(signal.SIGKILL)
    await_end(child)
    assert not folder.exists()


def test_a_watched_module_gets_its_arguments_and_gives_its_status(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*WATCHED, str(tmp_path), "json.tool", "--no-such-option"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as watched:
        assert watched.stderr is not None
        assert "--no-such-option" in watched.stderr.read()
        assert watched.wait(30) == 2
    assert tmp_path.exists()
