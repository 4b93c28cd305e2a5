"""Runs bundles on this machine's GPU and compares: `python -m tests.gpu.check FOLDER`. Needs the SDK and NumPy only.

A folder is what `tests.gpu.make_bundles` wrote: for each case a `.kiln` file and a `.npz` with the inputs of its calls,
the expected outputs and how far each element may be from them, and `calls.json`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tensorkiln.dtypes import DType
from tensorkiln.errors import TensorkilnError
from tensorkiln.program import Program

Array = np.ndarray[Any, Any]
CALLS = "calls.json"


@dataclass(frozen=True)
class Call:
    """One call of a bundle, with what it must give, up to `bounds` that are arrays of the outputs' shapes."""

    symbols: dict[str, int]
    inputs: list[Array]
    outputs: list[Array]
    bounds: list[Array]


def names(folder: Path) -> list[str]:
    """The cases in the folder."""
    return list(json.loads((folder / CALLS).read_text()))


def calls(folder: Path, name: str) -> Iterator[Call]:
    """The calls of a case."""
    stated = json.loads((folder / CALLS).read_text())[name]
    with np.load(folder / f"{name}.npz") as arrays:
        for number, symbols in enumerate(stated["symbols"]):
            found = {
                role: [
                    arrays[f"{role}_{number}_{place}"].view(DType(dtype).numpy)
                    for place, dtype in enumerate(stated[role])
                ]
                for role in ("inputs", "outputs")
            }
            bounds = [arrays[f"bounds_{number}_{place}"] for place in range(len(stated["outputs"]))]
            yield Call(symbols, found["inputs"], found["outputs"], bounds)


def check(folder: Path, name: str, program: Program) -> list[str]:
    """What is wrong with the results of a case, called twice for each of its calls."""
    wrong: list[str] = []
    for call in calls(folder, name):
        for _ in range(2):
            results = [np.asarray(result) for result in program(*call.inputs, **call.symbols)]
            compared = zip(results, call.outputs, call.bounds, strict=True)
            for place, (actual, expected, bound) in enumerate(compared):
                told = difference(actual, expected, bound)
                if told is not None:
                    wrong.append(f"{name} at {call.symbols}: output {place} differs: {told}")
    return wrong


def difference(actual: Array, expected: Array, bound: Array | float) -> str | None:
    """How `actual` differs from `expected` by more than `bound`, None when it does not; a NaN is close to a NaN."""
    if actual.dtype != expected.dtype:
        return f"dtype {actual.dtype} and not {expected.dtype}"
    if actual.shape != expected.shape:
        return f"shape {actual.shape} and not {expected.shape}"
    with np.errstate(invalid="ignore"):
        one, other = actual.astype(np.float64), expected.astype(np.float64)
        distance = np.abs(one - other)
        # Integers of 64 bits that differ may be the same float64. Where no bound holds, any number is right.
        same = (actual == expected) | (np.isnan(one) & np.isnan(other)) | np.isinf(bound)
        apart = ~(same | ((distance <= bound) & (distance > 0)))
    if not apart.any():
        return None
    return f"{int(apart.sum())} of {apart.size} elements, by up to {distance[apart].max():.3g}"


def checked(folder: Path, device: int, name: str) -> str:
    """What comes of a case on a device: `ok`, or what is wrong."""
    try:
        program = Program.from_bundle(folder / f"{name}.kiln", device=device)
        return "; ".join(check(folder, name, program)) or "ok"
    except TensorkilnError as error:
        return f"{type(error).__name__}: {error}"


def _in_processes(
    check_one: Callable[[str], str], found: Sequence[str], jobs: int, calls: int | None = None
) -> dict[str, str]:
    """What comes of each case, in so many processes, which end after so many of them."""
    # Of a driver nothing may be left over from the process that starts others.
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, spawning, max_tasks_per_child=calls) as pool:
        return dict(zip(found, pool.map(check_one, found), strict=True))


def main() -> int:
    """The command line; 1 when a result is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.check", description="Run bundles on this GPU.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes, each of which loads and calls a part of them")
    options = parser.parse_args()
    found = names(options.folder)
    told = _in_processes(partial(checked, options.folder, options.device), found, options.jobs)
    failed = [name for name, text in told.items() if text != "ok"]
    # After an error of a device, whatever its process calls fails: each of them once more in one of its own.
    again = _in_processes(partial(checked, options.folder, options.device), failed, options.jobs, calls=1)
    wrong = {name: text for name, text in again.items() if text != "ok"}
    for name, text in wrong.items():
        print(f"{name}: {text}")
    print(f"{len(found) - len(wrong)} of {len(found)} cases are right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
