"""The results of a run, as JSON: the median of every round, and the reason for every missing or wrong peer."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tests.bench.peers.peers import BY_NAME, PEERS


@dataclass(frozen=True, slots=True)
class Time:
    """Microseconds of a call of a case: the median of each round, with the setting and the alignment of inputs."""

    case: str
    peer: str
    cores: int
    memory: str
    place: str
    rounds_us: tuple[float, ...]

    @property
    def us(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.rounds_us)


@dataclass(frozen=True, slots=True)
class Compiled:
    """Milliseconds of compiling a case and its first call, minus those of a later call."""

    case: str
    peer: str
    cores: int
    ms: float


@dataclass(frozen=True, slots=True)
class Started:
    """Milliseconds from the start of a process to its first result; `is_kept`: with an earlier process's caches."""

    peer: str
    is_kept: bool
    rounds_ms: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a peer has no time for a case (all if `case` is empty) on `cores` cores (any number if 0)."""

    case: str
    peer: str
    reason: str
    cores: int = 0


@dataclass(slots=True)
class Record:
    """The record of a run. `kinds` has the kind of each requested case, in order."""

    machine: dict[str, str] = field(default_factory=dict[str, str])
    versions: dict[str, str] = field(default_factory=dict[str, str])
    kinds: dict[str, str] = field(default_factory=dict[str, str])
    times: list[Time] = field(default_factory=list[Time])
    compiled: list[Compiled] = field(default_factory=list[Compiled])
    started: list[Started] = field(default_factory=list[Started])
    problems: list[Problem] = field(default_factory=list[Problem])

    def of_kind(self, kind: str) -> list[str]:
        """The cases of a kind."""
        return [case for case, is_kind in self.kinds.items() if is_kind == kind]

    def us(self, case: str, cores: int, memory: str, place: str) -> dict[str, float]:
        """Microseconds by peer, in the order of `PEERS`."""
        wanted = (case, cores, memory, place)
        found = {
            time.peer: time.us for time in self.times if (time.case, time.cores, time.memory, time.place) == wanted
        }
        return {peer.name: found[peer.name] for peer in PEERS if peer.name in found}

    def compile_ms(self, cores: int, cases: Iterable[str]) -> dict[str, float]:
        """The median over these cases, by peer, without the cases that a peer lacks."""
        wanted = set(cases)
        by_peer: dict[str, list[float]] = {}
        for entry in self.compiled:
            if entry.cores == cores and entry.case in wanted:
                by_peer.setdefault(entry.peer, []).append(entry.ms)
        return {name: statistics.median(taken) for name, taken in by_peer.items()}

    def updated(self, newer: Record) -> Record:
        """Merge a newer run on this machine, which replaces the times and problems of the same cases and settings.

        ValueError for runs on different machines.
        """
        for name in ("processor", "caches", "system"):
            if self.machine.get(name) != newer.machine.get(name):
                raise ValueError(f"the {name} was {self.machine.get(name)}, and is {newer.machine.get(name)}")
        settings = {(each.case, each.cores, each.memory) for each in newer.times}
        compiled = {(each.case, each.cores) for each in newer.compiled}
        cores = {each.cores for each in newer.times}
        started = {each.peer for each in newer.started}
        times = [each for each in self.times if (each.case, each.cores, each.memory) not in settings]
        problems = [
            each
            for each in self.problems
            if each not in newer.problems
            and not (each.case in newer.kinds and each.cores in cores)
            and not (each.case == "" and each.peer in newer.versions)
        ]
        return Record(
            newer.machine,
            self.versions | newer.versions,
            self.kinds | newer.kinds,
            [*times, *newer.times],
            [*(each for each in self.compiled if (each.case, each.cores) not in compiled), *newer.compiled],
            [*(each for each in self.started if each.peer not in started), *newer.started],
            [*problems, *newer.problems],
        )

    def write(self, path: Path) -> None:
        """Write JSON with one entry per line, for readable diffs."""
        fields = msgspec.to_builtins(self).items()
        path.write_text("{\n" + ",\n".join(f'"{name}": {_lines(value)}' for name, value in fields) + "\n}\n")

    @classmethod
    def read(cls, path: Path) -> Record:
        return msgspec.json.decode(path.read_bytes(), type=cls)


def ratio(us: dict[str, float], *, has_weights: bool = False) -> float | None:
    """The best other peer's time divided by ours, with or without bound weights; None if either is missing."""
    alike = {name: taken for name, taken in us.items() if BY_NAME[name].has_weights == has_weights}
    ours = [taken for name, taken in alike.items() if BY_NAME[name].is_ours]
    theirs = [taken for name, taken in alike.items() if not BY_NAME[name].is_ours]
    return min(theirs) / ours[0] if ours and theirs else None


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """The geometric mean of the values that are not None; None without any."""
    there = [math.log(value) for value in values if value is not None]
    return math.exp(statistics.fmean(there)) if there else None


def _lines(value: object) -> str:
    encode: Callable[[object], str] = lambda each: msgspec.json.encode(each).decode()  # noqa: E731
    if not isinstance(value, list) or not value:
        return encode(value)
    return "[\n" + ",\n".join(f"  {encode(each)}" for each in value) + "\n]"
