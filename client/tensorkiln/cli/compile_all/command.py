"""The command."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from rich.table import Table

from ...errors import RequestError, TensorkilnError
from ...options import CompileOptions
from ...sdk import Client
from ...target import Target
from ..dims import Dims, parse_dims
from ..kiln_toml import FILE, ModelSettings, require_matches, settings_of
from ..options import FORMATS, Cubin, FastMath, TimeoutS, Url, compile_options
from ..report import output, reported
from ..targets import full_names
from .escape import escaped
from .farm import Wanted, compile_all
from .files import GraphFile, find_graphs, noted, write_whole, written
from .github import summary, workflow_commands
from .junit import junit
from .lock import Lock, other_options, read_lock, renewed
from .manifest import MANIFEST, SUMS, read_manifest, write_manifest
from .progress import Progress
from .result import Result, counts
from .verdict import Check, FailOn, Verdict, judge


def compile_folder(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help=f"A folder of graphs: {FORMATS}.", exists=True, file_okay=False)
    ],
    targets: Annotated[
        list[str] | None,
        typer.Option(
            "--targets", "-t", help=f"Targets, such as x86-64-v3,cpu:aarch64,sm_90; default: those of {FILE}."
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the programs.")] = Path("dist"),
    lock: Annotated[
        Path | None, typer.Option("--lock", help="Lock file to update; with --check, to compare with.")
    ] = None,
    junit_file: Annotated[Path | None, typer.Option("--junit", help="Write a report as JUnit XML.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write a report as JSON.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, max=64, help="Concurrent compiles.")] = 8,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            help="What fails the command, by commas: error (default), warning, cache-miss, size-regression.",
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Compare with the lock file; write neither programs nor the lock file.")
    ] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Use only the local cache, no service.")] = False,
    read_only_cache: Annotated[
        bool, typer.Option("--read-only-cache", help="Use programs that the service has stored; compile nothing.")
    ] = False,
    dim: Annotated[
        list[str] | None,
        typer.Option("--dim", help="Bounds (n=1:64) or size (n=8) of a dimension, for the graphs that have it."),
    ] = None,
    fast_math: FastMath = None,
    cubin: Cubin = None,
    url: Url = None,
    timeout: TimeoutS = None,
) -> None:
    """Compile every graph of a folder for several targets.

    Exit codes: 0 done; 1 a graph was refused or not compiled; 2 wrong usage; 3 no service, or it refuses the key;
    4 a check of --fail-on, --check or --read-only-cache failed; 5 a program without a valid signature, or one that
    differs from the lock file; 130 interrupted, after writing the reports.
    """
    if check and lock is None:
        raise typer.BadParameter("--check compares with a lock file: name it with --lock.")
    if read_only_cache and offline:
        raise typer.BadParameter("--read-only-cache needs a service, and --offline uses none: give one of them.")
    policies = (*_policies(fail_on or []), *([FailOn.CACHE_MISS] if read_only_cache else []))
    if FailOn.SIZE_REGRESSION in policies and lock is None:
        raise typer.BadParameter("--fail-on size-regression compares with a lock file: name it with --lock.")
    names = full_names(targets or [])
    with reported() as step, _ended_by_signal():
        for name in names:
            Target.parse(name)
        given = compile_options(fast_math=fast_math, cubin=cubin)
        options = CompileOptions.model_validate(given)
        reports = [path for path in (lock, junit_file, json_file) if path is not None]
        files = find_graphs(folder, out, [out / MANIFEST, out / SUMS, *reports])
        before = read_lock(lock) if lock is not None else None
        others = other_options(before, options)
        known = Lock(options=options) if before is None or others else before
        if not check:
            read_manifest(out)
        settings = _settings(files, folder, parse_dims(dim or []), names, given)
        wanted = Wanted(files, settings, known, None if check else out, jobs, read_only_cache)
        results, ended_by = wanted.results(), None
        progress = Progress(len(results), step, is_annotated=_is_github())
        with Client(url, timeout_s=timeout, offline=offline or None) as client:
            try:
                if not client.offline:
                    client.capabilities()
                compile_all(client, wanted, results, progress.tell)
            except (KeyboardInterrupt, TensorkilnError) as error:
                ended_by = error
        found, graphs = list(results.values()), {file.name for file in files}
        unwritten: list[TensorkilnError] = []
        if not check:
            with noted(unwritten), written(out / MANIFEST):
                write_manifest(out, graphs, found)
        if lock is not None and not check:
            made = {(each.file.name, each.target): each.made for each in found if each.made is not None}
            with noted(unwritten):
                write_whole(lock, renewed(known, graphs, made).to_json())
        if junit_file is not None:
            with noted(unwritten):
                write_whole(junit_file, junit(found))
        compared = Check(known.gone(graphs), others) if check else None
        verdict = judge(found, policies, check=compared, ended_by=ended_by or next(iter(unwritten), None))
        if json_file is not None:
            with noted(unwritten):
                write_whole(json_file, json.dumps(_as_json(found, verdict), indent=1) + "\n")
        page = os.environ.get("GITHUB_STEP_SUMMARY")
        if page:
            with noted(unwritten), written(Path(page)), open(page, "a", encoding="utf-8") as file:
                file.write(summary(found, verdict))
        _print(found, verdict)
        if others and not check:
            output().print(
                f"the lock file was made with other options and is written anew: {', '.join(others)}", soft_wrap=True
            )
        for error in (ended_by, *unwritten):
            if error is not None:
                raise error
    raise typer.Exit(verdict.code)


def _settings(
    files: Sequence[GraphFile], folder: Path, dims: Dims, targets: Sequence[str], options: Mapping[str, Any]
) -> tuple[ModelSettings, ...]:
    """The compile settings of each graph. RequestError for a graph without a target, and for an invalid file."""
    require_matches([file.path for file in files], folder)
    found: list[ModelSettings] = []
    for file in files:
        settings = settings_of(file.path, folder).with_flags(dims, targets, options)
        if not settings.targets:
            raise RequestError(f"{escaped(str(file.path))} has no target: name some by --targets, or in {FILE}.")
        found.append(settings.model_copy(update={"targets": full_names(settings.targets)}))
    return tuple(found)


def _policies(texts: Sequence[str]) -> tuple[FailOn, ...]:
    names = [name.strip() for text in texts for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in list(FailOn)]
    if unknown:
        raise typer.BadParameter(f"--fail-on {unknown[0]}: use {', '.join(FailOn)}.")
    return tuple(FailOn(name) for name in names)


def _is_github() -> bool:
    return os.environ.get("GITHUB_ACTIONS") == "true"


@contextmanager
def _ended_by_signal() -> Generator[None]:
    """Handle SIGTERM, which build machines send after an interrupt, like an interrupt: reports are still written."""

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _print(results: Sequence[Result], verdict: Verdict) -> None:
    if _is_github():
        for line in workflow_commands(results):
            typer.echo(line)
    console = output()
    console.print(_table(results))
    for violation in verdict.violations:
        # The prefix keeps names from starting a line: GitHub executes lines that begin with `::`.
        console.print(f"- {escaped(violation)}", soft_wrap=True)


def _as_json(results: Sequence[Result], verdict: Verdict) -> dict[str, Any]:
    hits = sum(each.cache is not None and each.cache.status == "hit" for each in results)
    return {
        "version": 1,
        "exit_code": verdict.code,
        "violations": list(verdict.violations),
        "totals": {"results": len(results), **counts(results), "hits": hits},
        "results": [each.to_json() for each in results],
    }


def _table(results: Sequence[Result]) -> Table:
    table = Table("graph", "target", "result", "cache", "bytes", "digest")
    for each in results:
        cache = f"{each.cache.status} ({each.cache.reason})" if each.cache is not None else ""
        told = each.error.code if each.error is not None else each.status
        size, digest = (str(each.made.bytes), each.made.digest[:12]) if each.made is not None else ("", "")
        table.add_row(*map(escaped, (each.file.name, each.target, told, cache, size, digest)))
    return table
