"""Compiles the cases for a GPU and keeps them with reference results: `python -m tests.gpu.make_bundles FOLDER`.

Runs where the compiler is; the folder is then carried to the machine that has the GPU.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from passes.compile import Compilation, CompileRequest, compile_request
from tensorkiln import reference
from tensorkiln.bundle import write_bundle
from tensorkiln.dtypes import DType
from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.frontends.onnx import load
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tensorkiln.target import Target
from tests.gpu.benches import BENCHES, NETWORKS
from tests.gpu.cases import CASES, LARGE, Case, Symbols
from tests.gpu.check import CALLS, Call
from tests.gpu.drawn import Drawn, drawn
from tests.networks.light import shipped

Array = np.ndarray[Any, Any]


def make_bundles(
    folder: Path,
    arch: str,
    *,
    cubin: bool = False,
    cases: Sequence[Case] = (*CASES, *LARGE),
    benches: bool = False,
    more: Iterable[Drawn] = (),
) -> None:
    """Write the cases, the benches if they are wanted, and `more`, all compiled for `arch`.

    With `cubin` they are assembled too, which needs ptxas. Of `more`, what the compiler refuses by name is left out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stated: dict[str, Any] = {}
    for case in cases:
        graph = case.graph()
        _write(folder, case.name, _compiled(graph, arch, cubin))
        stated[case.name] = _write_calls(
            folder, case.name, [_call(case, graph, *call) for call in enumerate(case.calls)]
        )
    for bench in BENCHES if benches else ():
        _write(folder, bench.case.name, _compiled(bench.case.graph(), arch, cubin))
    for name in NETWORKS if benches else ():
        _write(folder, f"bench_{name}", _compiled(load(shipped(name)).graph, arch, cubin))
    for one in more:
        try:
            compilation = _compiled(one.graph, arch, cubin)
        except UnsupportedGraphError as error:
            print(f"{one.name} is left out: {error}")
            continue
        _write(folder, one.name, compilation)
        call = Call(one.symbols, list(one.inputs), list(one.outputs), list(one.bounds))
        stated[one.name] = _write_calls(folder, one.name, [call])
    (folder / CALLS).write_text(json.dumps(stated, indent=1))


def _compiled(graph: Graph, arch: str, cubin: bool) -> Compilation:
    target = Target.parse(f"cuda:{arch}")
    return compile_request(CompileRequest(graph, target, CompileOptions(cubin=cubin)))


def _write(folder: Path, name: str, compilation: Compilation) -> None:
    write_bundle(folder / f"{name}.kiln", compilation.program, compilation.artifacts.__getitem__)


def _call(case: Case, graph: Graph, number: int, symbols: Symbols) -> Call:
    inputs = case.inputs(graph, symbols, number)
    outputs = list(reference.evaluate(graph, *inputs, **symbols))
    return Call(dict(symbols), inputs, outputs, [case.bound(output) for output in outputs])


def _write_calls(folder: Path, name: str, made: Sequence[Call]) -> dict[str, Any]:
    arrays: dict[str, Array] = {}
    dtypes: dict[str, list[str]] = {}
    for number, call in enumerate(made):
        for role, members in (("inputs", call.inputs), ("outputs", call.outputs)):
            dtypes[role] = [DType.from_numpy(array.dtype).value for array in members]
            # NumPy's format has no name for bfloat16, but one for plain bytes.
            arrays |= {f"{role}_{number}_{place}": _as_bytes(array) for place, array in enumerate(members)}
        arrays |= {f"bounds_{number}_{place}": _rounded_up(bound) for place, bound in enumerate(call.bounds)}
    # Stored as any: the stubs take a keyword of this function for an array of that name.
    contents: dict[str, Any] = arrays
    np.savez_compressed(folder / f"{name}.npz", **contents)
    return {"symbols": [call.symbols for call in made], **dtypes}


def _rounded_up(bound: Array) -> Array:
    """As float32, rounded up, which halves the file."""
    with np.errstate(over="ignore"):
        narrow = bound.astype(np.float32)
        return np.where(bound > 0, np.nextafter(narrow, np.float32(np.inf)), narrow)


def _as_bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(array.shape).view(f"V{array.dtype.itemsize}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.make_bundles", description="Compile the cases.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--cubin", action="store_true", help="assemble the code too, by ptxas")
    parser.add_argument(
        "--drawn", type=int, default=0, metavar="N", help="every kind on every dtype, and N compositions"
    )
    parser.add_argument("--seed", type=int, default=1, help="what they are drawn from")
    parser.add_argument("--benches", action="store_true", help="what tests.gpu.bench times, too")
    options = parser.parse_args()
    more = drawn(options.drawn, options.seed) if options.drawn else ()
    make_bundles(options.folder, options.arch, cubin=options.cubin, benches=options.benches, more=more)


if __name__ == "__main__":
    main()
