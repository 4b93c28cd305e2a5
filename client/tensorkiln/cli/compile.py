"""`kiln compile`: a graph to compiled programs, for this machine or another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ..bundle import SUFFIX, is_bundle
from ..errors import RequestError
from ..sdk import NATIVE, Client
from ..spec import CompiledProgram
from .dims import parse_dims
from .kiln_toml import FILE
from .model import read_given
from .options import Cubin, Dim, FastMath, Fusion, GraphFile, Schedule, Targets, TimeoutS, Tuned, Url, compile_options
from .out_file import out_file
from .report import output, reported, shown


def compile_graph(
    graph: GraphFile,
    target: Targets = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help='Write {"programs": [...]}, one program per target.')
    ] = None,
    artifacts: Annotated[
        Path | None,
        typer.Option(help="Write the code of the programs into this folder, each file named by its SHA-256."),
    ] = None,
    bundle: Annotated[
        Path | None,
        typer.Option(
            help="Write the program of one target with its code into a .kiln file, and its signature beside it."
        ),
    ] = None,
    dump_stages: Annotated[
        Path | None, typer.Option("--dump-stages", help="Write the IR after every stage into this folder.")
    ] = None,
    dim: Dim = None,
    fast_math: FastMath = None,
    cubin: Cubin = None,
    fusion: Fusion = None,
    schedule: Schedule = None,
    tuned: Tuned = None,
    url: Url = None,
    timeout: TimeoutS = None,
) -> None:
    """Compile a graph and print the programs."""
    if bundle is not None and (len(target or [NATIVE]) != 1 or not is_bundle(bundle)):
        raise typer.BadParameter(f"{bundle} holds one program: give one target, and a name that ends with {SUFFIX}.")
    given = compile_options(fast_math=fast_math, cubin=cubin, fusion=fusion, schedule=schedule, tuned=tuned)
    with reported() as step, Client(url, timeout_s=timeout) as client:
        step(f"reading {graph}")
        model, settings = read_given(graph, parse_dims(dim or []), lambda: client)
        settings = settings.with_flags({}, target, {**given, "dump_stages": dump_stages is not None})
        targets = settings.targets or (NATIVE,)
        if bundle is not None and len(targets) != 1:
            raise RequestError(f"{bundle} holds one program, and {FILE} names {len(targets)} targets: give --target.")
        step(f"compiling {graph.name} for {', '.join(targets)}")
        programs = client.compile_for(
            model.graph, targets, settings.options, on_progress=shown(step, f"compiling {graph.name}", targets)
        )
        if out is not None:
            _write(out, json.dumps({"programs": [program.model_dump(mode="json") for program in programs]}).encode())
        if artifacts is not None:
            step("fetching artifacts")
            _write_artifacts(client, programs, artifacts)
        if bundle is not None:
            step(f"writing {bundle}")
            client.save(programs[0], bundle)
        if dump_stages is not None:
            step("fetching stages")
            _write_stages(client, programs, dump_stages)
    console = output()
    console.print(_summary(targets, programs))
    if dump_stages is not None:
        console.print(_stages(programs))


def _write_artifacts(client: Client, programs: Sequence[CompiledProgram], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for digest in sorted(frozenset[str]().union(*(program.artifacts for program in programs))):
        _write(folder / digest, client.artifact(digest))


def _write_stages(client: Client, programs: Sequence[CompiledProgram], folder: Path) -> None:
    for program in programs:
        (folder / program.digest[:12]).mkdir(parents=True, exist_ok=True)
        for name, path in _stage_files(program):
            _write(folder / path, client.stage(program.digest, name).encode())


def _write(path: Path, content: bytes) -> None:
    with out_file(path) as file:
        file.write(content)


def _stage_files(program: CompiledProgram) -> list[tuple[str, Path]]:
    return [
        (stage.name, Path(program.digest[:12]) / f"{index:02}-{stage.name}{_suffix(stage.name, program)}")
        for index, stage in enumerate(program.stages)
        if stage.dump is not None
    ]


def _suffix(stage: str, program: CompiledProgram) -> str:
    """The file suffix of a stage's text: LLVM IR, assembly, JSON, or MLIR for every other stage."""
    assembler = ".ptx" if program.target.kind == "cuda" else ".s"
    return {"translate": ".ll", "codegen": assembler, "origins": ".json"}.get(stage, ".mlir")


def _summary(targets: Sequence[str], programs: Sequence[CompiledProgram]) -> Table:
    """A table with a row per target. A cached program shows no compile time."""
    table = Table("target", "digest", "cache", "kernels", "buffers", "compiled in")
    for target, program in zip(targets, programs, strict=True):
        seconds = sum(stage.seconds for stage in program.stages)
        taken = f"{seconds * 1e3:.1f} ms" if seconds and program.cache.status != "hit" else ""
        cache = f"{program.cache.status} ({program.cache.reason})" if program.cache.reason else program.cache.status
        counts = (str(len(program.kernels)), str(len(program.buffers)))
        table.add_row(target, program.digest[:12], cache, *counts, taken)
    return table


def _stages(programs: Sequence[CompiledProgram]) -> Table:
    table = Table("stage", "time", "file")
    for program in programs:
        files = dict(_stage_files(program))
        for stage in program.stages:
            table.add_row(stage.name, f"{stage.seconds * 1e3:.1f} ms", str(files.get(stage.name, "")))
    return table
