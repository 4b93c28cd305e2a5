"""`kiln explain`: whether a compile would hit the service's store, and why not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ..sdk import NATIVE, Client
from ..sdk.answers import Explained, Explanation, read
from .dims import parse_dims
from .model import read_given
from .options import Cubin, Dim, FastMath, Fusion, GraphFile, Schedule, Targets, TimeoutS, Tuned, Url, compile_options
from .out_file import out_file
from .report import output, reported


def explain(
    graph: GraphFile,
    target: Targets = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the whole answer of the service.")] = None,
    dim: Dim = None,
    fast_math: FastMath = None,
    cubin: Cubin = None,
    fusion: Fusion = None,
    schedule: Schedule = None,
    tuned: Tuned = None,
    url: Url = None,
    timeout: TimeoutS = None,
) -> None:
    """Show whether the service has stored the program of a graph; if not, what differs from the nearest program.

    Nothing is compiled.
    """
    given = compile_options(fast_math=fast_math, cubin=cubin, fusion=fusion, schedule=schedule, tuned=tuned)
    with reported() as step, Client(url, timeout_s=timeout) as client:
        step(f"reading {graph}")
        model, settings = read_given(graph, parse_dims(dim or []), lambda: client)
        settings = settings.with_flags({}, target, given)
        targets = settings.targets or (NATIVE,)
        step("asking the service")
        answer = json.dumps(client.explain(model.graph, targets, settings.options), indent=1).encode()
        actions = read(Explanation, answer).actions
        if out is not None:
            with out_file(out) as file:
                file.write(answer)
    output().print(_table(targets, actions))


def _table(targets: Sequence[str], actions: Sequence[Explained]) -> Table:
    table = Table("target", "digest", "stored", "why", "nearest", "differs in")
    for target, action in zip(targets, actions, strict=False):
        stored, nearest = "yes" if action.stored else "no", (action.cache.nearest or "")[:12]
        why, differs = action.cache.reason, ", ".join(action.cache.differs)
        table.add_row(target, action.digest[:12], stored, why, nearest, differs)
    return table
