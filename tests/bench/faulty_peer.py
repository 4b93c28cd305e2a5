"""Faulty peers, for tests of the measurement: NumPy's rows with a wrong result, a lost process, or a delay."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.bench.peers import on_numpy
from tests.bench.peers.engine import Compile, Engine, Task

SPIN_S = 0.2


def engine(cores: int, variant: str) -> Engine:
    """Variants: `wrong` changes the last element, `lost` ends the process, `late` sleeps in a call, and `spinning`
    leaves a thread that spins for a while.

    The row that every process runs first (E2) has no fault.
    """
    sound = on_numpy.engine(cores, "")
    faults: dict[str, Callable[[Any], Any]] = {"wrong": _wrong, "lost": _lost, "late": _late, "spinning": _spinning}

    def write(task: Task) -> Compile:
        compile_row = sound.write(task)
        if task.row == "E2":
            return compile_row
        return lambda constants: lambda *inputs: faults[variant](compile_row(constants)(*inputs))

    return Engine("0", write)


def _wrong(result: Any) -> Any:
    changed = np.array(result)
    changed.flat[-1] += 1
    return changed


def _lost(result: Any) -> Any:
    sys.exit("RuntimeError: in /opt/somewhere/deep/module.py: no more of it")


def _late(result: Any) -> Any:
    time.sleep(30)
    return result


def _spinning(result: Any) -> Any:
    end = time.monotonic() + SPIN_S

    def spin() -> None:
        while time.monotonic() < end:
            pass

    threading.Thread(target=spin, daemon=True).start()
    return result
