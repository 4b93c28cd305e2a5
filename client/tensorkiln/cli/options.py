"""The arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

FORMATS: Final = (
    "kiln's .json, .onnx, .mlir (StableHLO), .mlirbc or .stablehlo (its portable artifact), .jax or .jaxexport "
    "(jax.export), .pt2 (torch.export), .kilnmodel"
)
GraphFile = Annotated[
    Path,
    typer.Argument(help=f"A graph: {FORMATS}.", exists=True, dir_okay=False, readable=True),
]
Dim = Annotated[
    list[str] | None,
    typer.Option(
        "--dim", help="The bounds of a dynamic dimension of a model, as n=1:64, or its size, as n=8; repeatable."
    ),
]
Url = Annotated[
    str | None,
    typer.Option(
        "--url", envvar="KILN_URL", help="Base URL of a service; without one, an embedded service is started."
    ),
]
TimeoutS = Annotated[
    float | None, typer.Option("--timeout", envvar="KILN_TIMEOUT_S", help="Seconds that one request may take.")
]
Cubin = Annotated[
    bool, typer.Option("--cubin", help="Assemble the code of CUDA targets too, by nvJitLink of the server.")
]
NoFusion = Annotated[
    bool, typer.Option("--no-fusion", help="Run every op in a kernel of its own: slow, and a second opinion.")
]
NoSchedule = Annotated[
    bool, typer.Option("--no-schedule", help="Lower every kernel by MLIR's own passes: slower still, another opinion.")
]
Tuned = Annotated[
    str,
    typer.Option(
        "--tuned",
        help="Pick schedules by what `kiln tune` has measured of this graph: off, prefer (where there is something), "
        "or require.",
    ),
]
FastMath = Annotated[
    bool, typer.Option("--fast-math", help="Allow other results in the last bits and for non-finite values.")
]
