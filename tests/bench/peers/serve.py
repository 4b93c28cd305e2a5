"""A peer's process: `python -m tests.bench.peers.serve MODULE CORES [VARIANT]` answers requests, one line of JSON each.

It imports only the standard library, NumPy and the peer's module, so that it runs in any peer's environment. An error
in a peer ends the process with a message on standard error; the benchmark continues without it.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.peers.engine import CannotExpress, Engine, Task
from tests.bench.peers.workloads import Array

SAMPLE_S = 0.001
"""The least time of a sample, so that the clock's resolution does not matter."""

LINE = 64
"""Bytes of a cache line, and of the longest vector."""

PLACES = {"aligned": 0, "numpy": 16}
"""Offsets of inputs from a cache line, in bytes; NumPy's large arrays start after 16 bytes of malloc."""


def placed(array: Array, place: str) -> Array:
    """A copy with the alignment `place`."""
    room = np.empty(array.nbytes + 2 * LINE, np.uint8)
    start = -room.ctypes.data % LINE + PLACES[place]
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def timed(call: Callable[[], object], budget_s: float) -> float:
    """Median seconds per call, over samples for `budget_s` seconds; the first call is not counted."""
    began = time.perf_counter()
    call()
    repeats = max(1, round(SAMPLE_S / (time.perf_counter() - began)))
    samples: list[float] = []
    gc.disable()
    end = time.perf_counter() + budget_s
    while not samples or time.perf_counter() < end:
        began = time.perf_counter()
        for _ in range(repeats):
            call()
        samples.append((time.perf_counter() - began) / repeats)
    gc.enable()
    return statistics.median(samples)


class Served:
    """The prepared row: a call for each alignment of its inputs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._calls: dict[str, Callable[[], Any]] = {}

    def prepare(self, question: dict[str, Any]) -> dict[str, Any]:
        """Write, compile and call the row. Returns the seconds of compile and first call minus those of a later call.

        With `once`, only compile and call it.
        """
        self._calls.clear()
        arrays = [np.load(path) for path in question["inputs"]]
        model = question.get("model")
        task = Task(question["row"], arrays, question.get("names", ()), Path(model) if model else None)
        constants: Sequence[int] = question.get("constants", ())
        try:
            compile_row = self._engine.write(task)
            answer: dict[str, Any] = {}
            function: Callable[..., Any] | None = None
            for place in question["places"]:
                inputs = [self._engine.place(placed(array, place)) for array in arrays]
                fixed = {number: inputs[number] for number in constants}
                given = [array for number, array in enumerate(inputs) if number not in fixed]
                began = time.perf_counter()
                if function is None or constants:
                    function = compile_row(fixed)
                self._calls[place] = _call(function, given)
                self._calls[place]()
                if question.get("once"):
                    return {}
                if not answer:
                    first_s = time.perf_counter() - began
                    answer = {"compile_s": max(0.0, first_s - timed(self._calls[place], 0.0))}
        except CannotExpress as error:
            self._calls.clear()
            return {"missing": str(error)}
        return answer

    def time(self, question: dict[str, Any]) -> dict[str, Any]:
        """Median seconds of a call, with the inputs at `place`."""
        return {"seconds": timed(self._calls[question["place"]], question["budget_s"])}

    def results(self, question: dict[str, Any]) -> dict[str, Any]:
        """Call the row and save the results in `folder`; returns the files by the alignment of inputs."""
        saved: dict[str, list[str]] = {}
        for place, call in self._calls.items():
            saved[place] = []
            for number, result in enumerate(self._engine.outputs(call())):
                path = Path(question["folder"]) / f"{place}-{number}.npy"
                np.save(path, np.asarray(result))
                saved[place].append(str(path))
        return {"results": saved}

    def drop(self, question: dict[str, Any]) -> dict[str, Any]:
        """Forget the row."""
        self._calls.clear()
        gc.collect()
        return {}


def _call(function: Callable[..., Any], inputs: Sequence[Any]) -> Callable[[], Any]:
    return lambda: function(*inputs)


def main() -> None:
    """Answer each line of standard input with a line of standard output; prints of a peer go to standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    module, cores, *variant = sys.argv[1:]
    engine: Engine = import_module(module).engine(int(cores), variant[0] if variant else "")
    served = Served(engine)
    verbs = {"prepare": served.prepare, "time": served.time, "results": served.results, "drop": served.drop}
    print(json.dumps({"version": engine.version}), file=answers, flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        print(json.dumps(verbs[question["do"]](question)), file=answers, flush=True)


if __name__ == "__main__":
    main()
