"""`kiln report`: a page about a compiled program."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from ..bundle import is_bundle
from ..errors import RequestError
from ..report import Report
from ..sdk import NATIVE, Client
from ..trust.carried import read_trusted, signature_of
from .dims import parse_dims
from .kiln_toml import FILE
from .model import read_given
from .options import FORMATS, Cubin, Dim, FastMath, Fusion, Schedule, Targets, TimeoutS, Tuned, Url, compile_options
from .out_file import out_file
from .report import Step, output, reported, shown

_STORED: Final = re.compile(r"(?P<service>https?://.+)/programs/(?P<digest>[0-9a-f]{64})(/report)?/?")
_SUFFIX: Final = ".html"


def report(
    program: Annotated[
        str,
        typer.Argument(
            help=f"A .kiln bundle, a model to compile ({FORMATS}), or the URL of a stored program: "
            "http://host:8080/programs/DIGEST."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Path of the page; default: the name of the program with .html."),
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Another program to compare with: a bundle, a model or a URL.")
    ] = None,
    target: Targets = None,
    dim: Dim = None,
    fast_math: FastMath = None,
    cubin: Cubin = None,
    fusion: Fusion = None,
    schedule: Schedule = None,
    tuned: Tuned = None,
    url: Url = None,
    timeout: TimeoutS = None,
) -> None:
    """Write a page about a compiled program: graph, schedule, memory, the IR after each stage, and every kernel.

    It is one HTML file that needs no network. With two targets, the page compares the two programs of the model.
    """
    options = compile_options(fast_math=fast_math, cubin=cubin, fusion=fusion, schedule=schedule, tuned=tuned)
    with reported() as step:
        sources = _Sources(target or (), dim or (), options, url, timeout, step)
        first, *others = sources.reports(program)
        if against is not None:
            others = [*others, *sources.reports(against)]
        if len(others) > 1:
            raise RequestError("A page compares two programs: give two targets, or one and --against.")
        path = out or Path(_name_of(program) + _SUFFIX)
        step(f"writing {path}")
        with out_file(path) as file:
            file.write(first.html(*others).encode())
    output().print(f"{path} is the report of {program}; open it in a browser.", soft_wrap=True)


def _name_of(program: str) -> str:
    stored = _STORED.fullmatch(program)
    return stored["digest"][:12] if stored else Path(program).stem


@dataclass(frozen=True, slots=True)
class _Sources:
    """The sources of programs, and the settings for compiling models."""

    targets: Sequence[str]
    dims: Sequence[str]
    options: Mapping[str, Any]
    url: str | None
    timeout_s: float | None
    step: Step

    def reports(self, program: str) -> list[Report]:
        """The report of a program, or one report per target for a model."""
        stored = _STORED.fullmatch(program)
        if stored is not None:
            self._require_compiled(program)
            self.step(f"fetching {stored['digest'][:12]}")
            with Client(stored["service"], timeout_s=self.timeout_s) as client:
                return [client.report(stored["digest"])]
        path = Path(program)
        if not path.is_file():
            raise RequestError(
                f"{program} is neither a file nor the URL of a program, such as http://host:8080/programs/DIGEST."
            )
        return [self._bundle(path)] if is_bundle(path) else self._compiled(path)

    def _bundle(self, path: Path) -> Report:
        self._require_compiled(str(path))
        self.step(f"reading {path}")
        bundle = read_trusted(path)
        return Report.of(bundle.program, artifacts=bundle.artifacts, signature=signature_of(path))

    def _compiled(self, path: Path) -> list[Report]:
        with Client(self.url, timeout_s=self.timeout_s) as client:
            self.step(f"reading {path}")
            model, settings = read_given(path, parse_dims(list(self.dims)), lambda: client)
            settings = settings.with_flags({}, list(self.targets) or None, {**self.options, "dump_stages": True})
            targets = settings.targets or (NATIVE,)
            if len(targets) > 2:
                raise RequestError(
                    f"A page compares two programs, and --target or {FILE} names {len(targets)} targets."
                )
            what = f"compiling {path.name}"
            self.step(f"{what} for {', '.join(targets)}")
            programs = client.compile_for(
                model.graph, targets, settings.options, on_progress=shown(self.step, what, targets)
            )
            self.step("fetching stages")
            return [client.report(compiled, graph=model.graph) for compiled in programs]

    def _require_compiled(self, program: str) -> None:
        if self.targets or self.dims or self.options:
            raise RequestError(f"{program} is compiled already: leave out --target, --dim and the compile options.")
