"""The run: compile every graph for every target, and write the programs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ...errors import NotFoundError, TensorkilnError
from ...options import CompileOptions
from ...sdk import Client, Outcome
from ...spec import CacheInfo
from ...target import Target
from ..kiln_toml import ModelSettings
from .files import GraphFile, written
from .lock import Lock
from .manifest import place
from .result import Result, locked


@dataclass(frozen=True, slots=True)
class Wanted:
    """The task of a run. `out` is None when nothing is written; `from_store` when nothing is compiled.

    `settings` has the compile settings of each file, including targets.
    """

    files: tuple[GraphFile, ...]
    settings: tuple[ModelSettings, ...]
    lock: Lock
    out: Path | None
    jobs: int
    from_store: bool = False

    def results(self) -> dict[tuple[int, int], Result]:
        """Empty results, by the positions of file and target."""
        return {
            (number, position): Result(file, target, locked=self.lock.find(file.name, target))
            for number, (file, settings) in enumerate(zip(self.files, self.settings, strict=True))
            for position, target in enumerate(settings.targets or ())
        }

    def alike(self) -> list[list[int]]:
        """The positions of the files, grouped by equal targets and options."""
        found: dict[tuple[tuple[str, ...], CompileOptions], list[int]] = {}
        for number, each in enumerate(self.settings):
            found.setdefault((each.targets or (), each.options), []).append(number)
        return list(found.values())


def compile_all(
    client: Client, wanted: Wanted, results: dict[tuple[int, int], Result], tell: Callable[[Result], None]
) -> None:
    """Compile everything: replace each of `results` as it completes, and pass it to `tell`.

    After KeyboardInterrupt, or an error that concerns the whole run, completed results remain.
    """
    for numbers in wanted.alike():
        first = wanted.settings[numbers[0]]
        parsed = [Target.parse(target) for target in first.targets or ()]
        graphs = [partial(wanted.files[each].read, wanted.settings[each], lambda: client) for each in numbers]
        run = client.compile_many(graphs, parsed, first.options, concurrency=wanted.jobs, from_store=wanted.from_store)
        with closing(run) as outcomes:
            for outcome in outcomes:
                which = (numbers[outcome.graph], outcome.target)
                results[which] = _kept(client, wanted, results[which], outcome)
                tell(results[which])


def _kept(client: Client, wanted: Wanted, result: Result, outcome: Outcome) -> Result:
    """Fetch and write the program of an outcome, and return its result."""
    file, target, before = result.file, result.target, result.locked
    if outcome.compiled is None:
        if wanted.from_store and isinstance(outcome.error, NotFoundError):
            return Result(file, target, outcome, locked=before, miss=_miss(outcome.error))
        return Result(file, target, outcome, locked=before, error=outcome.error)
    program = outcome.compiled
    try:
        size = sum(len(client.artifact(digest)) for digest in program.artifacts)
        if wanted.out is not None:
            path = wanted.out / place(file.name, target, program.digest)
            with written(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                client.save(program, path)
    except TensorkilnError as error:
        if wanted.from_store and isinstance(error, NotFoundError):
            return Result(file, target, outcome, locked=before, miss=_miss(error))
        return Result(file, target, outcome, locked=before, error=error)
    made = locked(program, size)
    return Result(file, target, outcome, made, before)


def _miss(error: NotFoundError) -> CacheInfo:
    """The service's reason that a program is not stored; empty for a program that was evicted just now."""
    return CacheInfo.model_validate(error.details.get("cache", {"status": "miss", "reason": error.message}))
