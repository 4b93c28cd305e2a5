"""`kiln targets`: the names of targets, what each stands for, and where it runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from rich.table import Table

from ..architectures import ARCHITECTURES, Architecture, Scope
from ..errors import DeviceError
from ..sdk import Client
from ..target import LEVELS, Target, missing_features
from ..target_names import NEWEST_CUDA
from .options import TimeoutS, Url
from .report import output, reported

_DEVICES = {Scope.LATER: "and later", Scope.FAMILY: "and later of its family", Scope.EXACT: "alone"}
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Row:
    """`compiles`: whether the service compiles for the target; None when no service was asked."""

    name: str
    stands_for: str
    here: str
    compiles: bool | None


def targets(
    url: Url = None,
    timeout: TimeoutS = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the targets as JSON.")] = False,
) -> None:
    """List the targets by name, and mark those that run on this machine.

    With --url, mark those that the service compiles for. Without it, no service is contacted.
    """
    with reported() as step:
        known: frozenset[str] | None = None
        if url:
            step(f"asking {url}")
            with Client(url, timeout_s=timeout) as client:
                known = frozenset(map(str, client.capabilities().get("targets", ())))
        rows = [Row(name, what, here, _compiles(name, known)) for name, what, here in (*_cpus(), *_gpus())]
    if as_json:
        typer.echo(json.dumps({"targets": [asdict(row) for row in rows]}, indent=2))
        return
    table = Table("target", "stands for", "here", *(["service"] if known is not None else []))
    for row in rows:
        told = [] if row.compiles is None else ["yes" if row.compiles else "no"]
        table.add_row(row.name, row.stands_for, row.here, *told)
    output().print(table)


def _cpus() -> Iterator[tuple[str, str, str]]:
    try:
        native = Target.parse("cpu:native")
    except DeviceError as error:
        native = None
        yield "native", "exactly this machine", error.message
    if native is not None:
        yield "native", f"exactly this machine: {native.cpu}", "runs"
    usual = Target.parse("cpu")
    yield "cpu", f"{usual.cpu}, the usual one of this architecture", _runs(usual, native)
    for level, (triple, _, features) in LEVELS.items():
        yield level, f"{triple}, {len(features)} features", _runs(Target.parse(level), native)


def _gpus() -> Iterator[tuple[str, str, str]]:
    yield "cuda", f"{NEWEST_CUDA}, the newest architecture that is known", ""
    for name, architecture in ARCHITECTURES.items():
        yield name, _devices(architecture), ""


def _devices(architecture: Architecture) -> str:
    major, minor = architecture.capability
    return f"compute capability {major}.{minor} {_DEVICES[architecture.scope]}"


def _runs(target: Target, native: Target | None) -> str:
    """The table cell about this machine: `runs`, or the features that it lacks."""
    if native is None:
        return ""
    if (target.triple or "").partition("-")[0] != (native.triple or "").partition("-")[0]:
        return "another architecture"
    missing = missing_features(target, dict.fromkeys(native.features, True))
    more = " and more" if len(missing) > _NAMED else ""
    return f"lacks {', '.join(missing[:_NAMED])}{more}" if missing else "runs"


def _compiles(name: str, known: frozenset[str] | None) -> bool | None:
    if known is None:
        return None
    names = {"native": "cpu", "cuda": f"cuda:{NEWEST_CUDA}"}
    full = names.get(name, name)
    return bool({full, f"cpu:{full}", f"cuda:{full}"} & known)
