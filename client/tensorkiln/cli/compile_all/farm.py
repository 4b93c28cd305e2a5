"""The run: every graph for every target, and files for what comes back."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...bundle import SUFFIX
from ...errors import TensorkilnError
from ...options import CompileOptions
from ...sdk import Client, Outcome
from ...target import Target
from .files import GraphFile, write_whole
from .lock import Lock
from .result import Result, locked

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a run is to do. `out` is None for one that only looks."""

    files: tuple[GraphFile, ...]
    targets: tuple[str, ...]
    options: CompileOptions
    lock: Lock
    out: Path | None
    jobs: int

    def results(self) -> dict[tuple[int, int], Result]:
        """The results before anything has run, by the positions of file and target."""
        return {
            (place, position): Result(file, target, locked=self.lock.find(file.name, target))
            for place, file in enumerate(self.files)
            for position, target in enumerate(self.targets)
        }


def compile_all(
    client: Client, wanted: Wanted, results: dict[tuple[int, int], Result], tell: Callable[[Result], None]
) -> None:
    """Replace every one of `results` by what came of it, and `tell` each as it comes.

    KeyboardInterrupt, and an error that concerns the whole run, leave those that are there.
    """
    parsed = [Target.parse(target) for target in wanted.targets]
    graphs = [file.read for file in wanted.files]
    with closing(client.compile_many(graphs, parsed, wanted.options, concurrency=wanted.jobs)) as outcomes:
        for outcome in outcomes:
            place = (outcome.graph, outcome.target)
            results[place] = _kept(client, wanted, results[place], outcome)
            tell(results[place])


def write_manifest(client: Client, out: Path, results: Sequence[Result]) -> None:
    """Say what lies in `out`: for every program its file, digests, build and signature."""
    entries: dict[str, dict[str, Any]] = {}
    for each in results:
        if each.made is None or each.error is not None:
            continue
        signature = client.signature(each.made.digest)
        entries.setdefault(each.file.name, {})[each.target] = {
            "file": _place(each.file.name, each.target, each.made.digest).as_posix(),
            **each.made.model_dump(),
            "signature": signature.model_dump(mode="json", by_alias=True),
        }
    text = json.dumps({"version": 1, "programs": entries}, indent=1, sort_keys=True)
    write_whole(out / MANIFEST, text + "\n")


def _kept(client: Client, wanted: Wanted, result: Result, outcome: Outcome) -> Result:
    """The result of an outcome, once its program is fetched and written."""
    file, target, before = result.file, result.target, result.locked
    if outcome.compiled is None:
        return Result(file, target, outcome, locked=before, error=outcome.error)
    program = outcome.compiled
    try:
        size = sum(len(client.artifact(digest)) for digest in program.artifacts)
        if wanted.out is not None:
            path = wanted.out / _place(file.name, target, program.digest)
            path.parent.mkdir(parents=True, exist_ok=True)
            client.save(program, path)
    except TensorkilnError as error:
        return Result(file, target, outcome, locked=before, error=error)
    made = locked(program, size)
    return Result(file, target, outcome, made, before)


def _place(graph: str, target: str, digest: str) -> Path:
    """Where a program lies in the folder; the colon of a target is no letter of a file's name everywhere."""
    return Path(graph) / target.replace(":", "-") / f"{digest}{SUFFIX}"
