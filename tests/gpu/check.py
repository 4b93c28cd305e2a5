"""Runs bundles on this machine's GPU and compares: `python -m tests.gpu.check FOLDER`. Needs the SDK and NumPy only.

A folder is what `tests.gpu.make_bundles` wrote: for each case a `.kiln` file and a `.npz` with the inputs and expected
outputs of its calls, and `calls.json`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tensorkiln.dtypes import DType
from tensorkiln.program import Program

Array = np.ndarray[Any, Any]
CALLS = "calls.json"


@dataclass(frozen=True)
class Call:
    """One call of a bundle, with what it must give."""

    symbols: dict[str, int]
    inputs: list[Array]
    outputs: list[Array]


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
            yield Call(symbols, found["inputs"], found["outputs"])


def check(folder: Path, name: str, program: Program) -> list[str]:
    """What is wrong with the results of a case, called twice for each of its calls."""
    stated = json.loads((folder / CALLS).read_text())[name]
    wrong: list[str] = []
    for call in calls(folder, name):
        for _ in range(2):
            results = [np.asarray(result) for result in program(*call.inputs, **call.symbols)]
            for place, (actual, expected) in enumerate(zip(results, call.outputs, strict=True)):
                told = difference(actual, expected, stated["rtol"], stated["atol"])
                if told is not None:
                    wrong.append(f"{name} at {call.symbols}: output {place} differs: {told}")
    return wrong


def difference(actual: Array, expected: Array, rtol: float, atol: float) -> str | None:
    """How `actual` differs from `expected`, None when it does not; a NaN is close to a NaN."""
    if actual.dtype != expected.dtype:
        return f"dtype {actual.dtype} and not {expected.dtype}"
    if actual.shape != expected.shape:
        return f"shape {actual.shape} and not {expected.shape}"
    one, other = actual.astype(np.float64), expected.astype(np.float64)
    apart = ~np.isclose(one, other, rtol, atol, equal_nan=True)
    if not apart.any():
        return None
    return f"{int(apart.sum())} of {apart.size} elements, by up to {np.abs(one - other)[apart].max():.3g}"


def main() -> int:
    """The command line; 1 when a result is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.check", description="Run bundles on this GPU.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", type=int, default=0)
    options = parser.parse_args()
    folder, failed = Path(options.folder), 0
    for name in names(folder):
        wrong = check(folder, name, Program.from_bundle(folder / f"{name}.kiln", device=options.device))
        failed += bool(wrong)
        print(f"{name}: {'; '.join(wrong) or 'ok'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
