"""Print which exports are usable: each is imported, compiled for this machine, run and compared with torch's outputs.

`python -m tests.models` prints a line for each export. Its status is 1 if one is refused or an output is wrong.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from tensorkiln.errors import UnsupportedGraphError
from tests.compiled import compiled, program
from tests.models.exports import EXPORTS, TOLERANCE, Export


def main() -> None:
    wrong: list[str] = []
    for export in EXPORTS:
        try:
            line, farthest = _tried(export)
            if not farthest <= TOLERANCE:
                wrong.append(f"{export} is {farthest:.0e} from torch, where {TOLERANCE:.0e} is allowed")
        except UnsupportedGraphError as error:
            line = str(error)
            wrong.append(f"{export} is refused: {error}")
        print(f"{export!s:31} {line}", flush=True)
    sys.exit("\n".join(wrong) or None)


def _tried(export: Export) -> tuple[str, float]:
    """What is said of an export that is imported, and how far it is from torch."""
    model = export.load()
    start = time.process_time()
    compilation = compiled(model.graph)
    seconds = time.process_time() - start
    farthest = float(np.max([far for _, far in export.differences(model, program(compilation))]))
    counts = f"{len(model.graph.nodes):4} nodes, {len(compilation.program.kernels):2} kernels"
    return f"{counts}, compiled in {seconds:4.1f} s, at most {farthest:.0e} from torch", farthest


if __name__ == "__main__":
    sys.setrecursionlimit(20_000)
    main()
