"""Commands that somebody breaks off."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


def broken_off(
    command: Sequence[str],
    when: Callable[[], object],
    number: signal.Signals = signal.SIGINT,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """The end of a command that gets a signal as soon as `when` is true. It must not end before."""
    with subprocess.Popen(
        command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        try:
            while not when():
                assert child.poll() is None, child.communicate()[1]
                time.sleep(0.02)
            child.send_signal(number)
            out, err = child.communicate(timeout=60)
        except BaseException:
            child.kill()
            raise
    return subprocess.CompletedProcess(command, child.returncode, out, err)
