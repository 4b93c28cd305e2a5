"""Compiles the cases for a GPU and keeps them with reference results: `python -m tests.gpu.make_bundles FOLDER`.

Runs where the compiler is; the folder is then carried to the machine that has the GPU.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from passes.compile import Compilation, CompileRequest, compile_request
from tensorkiln import reference
from tensorkiln.bundle import write_bundle
from tensorkiln.dtypes import DType
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tensorkiln.target import Target
from tests.gpu.cases import BENCHES, CASES, Case
from tests.gpu.check import CALLS

Array = np.ndarray[Any, Any]


def make_bundles(folder: Path, arch: str, *, cubin: bool = False, cases: Sequence[Case] = CASES) -> None:
    """Write the cases, and the benches, compiled for `arch`; with `cubin` also assembled, which needs ptxas."""
    folder.mkdir(parents=True, exist_ok=True)
    stated: dict[str, Any] = {}
    for case in cases:
        graph = case.graph()
        _write(folder, case, _compiled(graph, arch, cubin))
        stated[case.name] = _write_calls(folder, case, graph)
    for case in BENCHES:
        _write(folder, case, _compiled(case.graph(), arch, cubin))
    (folder / CALLS).write_text(json.dumps(stated, indent=1))


def _compiled(graph: Graph, arch: str, cubin: bool) -> Compilation:
    target = Target.parse(f"cuda:{arch}")
    return compile_request(CompileRequest(graph, target, CompileOptions(cubin=cubin)))


def _write(folder: Path, case: Case, compilation: Compilation) -> None:
    write_bundle(folder / f"{case.name}.kiln", compilation.program, compilation.artifacts.__getitem__)


def _write_calls(folder: Path, case: Case, graph: Graph) -> dict[str, Any]:
    arrays: dict[str, Array] = {}
    dtypes: dict[str, list[str]] = {}
    for number, symbols in enumerate(case.calls):
        inputs = case.inputs(graph, symbols, number)
        for role, members in (("inputs", inputs), ("outputs", reference.evaluate(graph, *inputs, **symbols))):
            dtypes[role] = [DType.from_numpy(array.dtype).value for array in members]
            # NumPy's format has no name for bfloat16, but one for plain bytes.
            arrays |= {f"{role}_{number}_{place}": _as_bytes(array) for place, array in enumerate(members)}
    # Stored as any: the stubs take a keyword of this function for an array of that name.
    contents: dict[str, Any] = arrays
    np.savez_compressed(folder / f"{case.name}.npz", **contents)
    return {"symbols": [dict(symbols) for symbols in case.calls], **dtypes, "rtol": case.rtol, "atol": case.atol}


def _as_bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(array.shape).view(f"V{array.dtype.itemsize}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.make_bundles", description="Compile the cases.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--cubin", action="store_true", help="assemble the code too, by ptxas")
    options = parser.parse_args()
    make_bundles(options.folder, options.arch, cubin=options.cubin)


if __name__ == "__main__":
    main()
