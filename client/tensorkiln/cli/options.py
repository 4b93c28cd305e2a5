"""The arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

FORMATS: Final = (
    "kiln's .json, .onnx, .mlir (StableHLO), .mlirbc or .stablehlo (its portable artifact), .jax or .jaxexport "
    "(jax.export), .pt2 (torch.export), .kilnmodel"
)
GraphFile = Annotated[
    Path,
    typer.Argument(help=f"A graph: {FORMATS}.", exists=True, dir_okay=False, readable=True),
]
ProgramFile = Annotated[
    Path,
    typer.Argument(help=f"A graph: {FORMATS}; or a .kiln bundle.", exists=True, dir_okay=False, readable=True),
]
Inputs = Annotated[
    list[Path] | None,
    typer.Option("--input", "-i", help="A .npy or .npz file; repeatable, in the order of the graph's inputs."),
]
Symbols = Annotated[
    list[str] | None,
    typer.Option("--symbol", "-s", help="The value of a symbol that no input determines, such as n=4; repeatable."),
]
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        "-t",
        help="cpu:native (default), cpu:x86-64-v3, cpu:aarch64, cuda:sm_90 and others; repeatable.",
    ),
]
Dim = Annotated[
    list[str] | None,
    typer.Option("--dim", help="Bounds (n=1:64) or size (n=8) of a dynamic dimension of a model; repeatable."),
]
Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="KILN_URL",
        help="Base URL of a service; without one, an embedded service is started if one is needed.",
    ),
]
TimeoutS = Annotated[
    float | None, typer.Option("--timeout", envvar="KILN_TIMEOUT_S", help="Seconds that one request may take.")
]
Cubin = Annotated[
    bool | None,
    typer.Option(
        "--cubin/--no-cubin",
        show_default=False,
        help="Also assemble the PTX of CUDA targets to cubins, with the service's nvJitLink.",
    ),
]
Fusion = Annotated[
    bool | None,
    typer.Option(
        "--fusion/--no-fusion",
        show_default=False,
        help="--no-fusion runs every op in a separate kernel, to compare results; slow.",
    ),
]
Schedule = Annotated[
    bool | None,
    typer.Option(
        "--schedule/--no-schedule",
        show_default=False,
        help="--no-schedule lowers kernels with MLIR's own passes, to locate a defect; slower still.",
    ),
]
Tuned = Annotated[
    str | None,
    typer.Option(
        "--tuned",
        help="Use the schedules measured by `kiln tune`: off (default), prefer (if there are any), or require.",
    ),
]
FastMath = Annotated[
    bool | None,
    typer.Option(
        "--fast-math/--no-fast-math",
        show_default=False,
        help="Round a product and its sum once, and take fewer products in convolutions: results may be less accurate, "
        "and differ for non-finite values.",
    ),
]


def compile_options(
    *,
    fast_math: bool | None = None,
    cubin: bool | None = None,
    fusion: bool | None = None,
    schedule: bool | None = None,
    tuned: str | None = None,
) -> dict[str, Any]:
    """The compile options set on the command line."""
    named = None if schedule is None else "auto" if schedule else "none"
    stated = {"fast_math": fast_math, "cubin": cubin, "fusion": fusion, "schedule": named, "tuned": tuned}
    return {name: value for name, value in stated.items() if value is not None}
