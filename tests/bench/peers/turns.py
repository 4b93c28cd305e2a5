"""Interleaved measurement: every peer prepares a case, then each round times all peers.

A slow moment of the machine so affects all of them. Results are checked before and after the timing.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.peers.cases import Asked, Case, differ
from tests.bench.peers.peers import Peer
from tests.bench.peers.process import PeerLost, PeerProcess, Setting
from tests.bench.peers.record import Compiled, Problem, Record, Time
from tests.bench.peers.workloads import BY_NAME

ROUNDS = 5
STARTUP_S = 120.0
PATIENCE_S = 120.0
"""The time limit of compiling a case, and of timing it beyond the budget."""

LOOK_S = 0.002
LOOKS = 3
SPIN_S = 1.0
"""A peer is timed once all threads of all peers sleep at so many looks, this long apart, and at the latest after
`SPIN_S`: after a call, threads of some libraries spin for a while.
"""

_FIRST = BY_NAME["E2"]
"""A small row that warms up each process, since a first compile loads more than later ones."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The seconds in which a peer times a case with one alignment of inputs, over all rounds."""

    seconds: float
    rounds: int = ROUNDS
    patience_s: float = PATIENCE_S


class Turns:
    """The processes of all peers in one setting; a lost peer is restarted for the next case."""

    def __init__(
        self, peers: Sequence[Peer], pythons: Mapping[str, Path], setting: Setting, budget: Budget, record: Record
    ) -> None:
        self._peers, self._pythons = [peer for peer in peers if peer.name in pythons], pythons
        self._setting, self._budget, self._record = setting, budget, record
        self._processes: dict[str, PeerProcess] = {}
        self._stack = ExitStack()
        self.order: list[str] = []
        """The peers in the order in which they were timed."""

    def __enter__(self) -> Turns:
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        for peer in self._peers:
            self._start(peer)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.close()
        self._stack.close()

    def measure(self, case: Case, places: Sequence[str]) -> None:
        """Measure a case on all peers; record the times, and the problems of peers without one."""
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            folder = Path(name)
            asked = case.make(folder)
            files = _saved(asked.inputs, folder)
            able: dict[str, PeerProcess] = {}
            for peer in self._peers:
                if peer.has_weights and not case.weights:
                    continue
                process = self._processes.get(peer.name) or self._start(peer)
                if process is not None and self._prepared(process, case, asked, files, places, folder):
                    able[peer.name] = process
            rounds = self._rounds(case, able, places)
            for peer, process in list(able.items()):
                if self._checked(process, case, asked, folder):
                    self._add(case, peer, places, rounds)
                    self._ask(process, case, "drop")

    def _start(self, peer: Peer) -> PeerProcess | None:
        home = self._folder / peer.name
        home.mkdir(exist_ok=True)
        try:
            process = PeerProcess(peer, self._pythons[peer.name], self._setting, home, STARTUP_S)
            files = _saved(_FIRST.inputs(is_small=True), home)
            process.ask(STARTUP_S, "prepare", row=_FIRST.name, inputs=files, places=["numpy"])
        except PeerLost as lost:
            self._problem("", peer.name, str(lost))
            return None
        self._record.versions[peer.name] = process.version
        self._processes[peer.name] = process
        return process

    def _prepared(
        self, process: PeerProcess, case: Case, asked: Asked, files: list[str], places: Sequence[str], folder: Path
    ) -> bool:
        answer = self._ask(
            *(process, case, "prepare"),
            row=case.name,
            inputs=files,
            places=list(places),
            constants=list(case.weights) if process.peer.has_weights else [],
            names=list(asked.names),
            model=str(asked.model) if asked.model else None,
        )
        if answer is None:
            return False
        if "missing" in answer:
            self._problem(case.name, process.peer.name, str(answer["missing"]))
            return False
        taken_ms = round(float(answer["compile_s"]) * 1e3, 2)
        self._record.compiled.append(Compiled(case.name, process.peer.name, self._setting.cores, taken_ms))
        return self._checked(process, case, asked, folder)

    def _rounds(
        self, case: Case, able: dict[str, PeerProcess], places: Sequence[str]
    ) -> dict[tuple[str, str], list[float]]:
        """The seconds of each round by peer and alignment; each round starts with another peer."""
        taken: dict[tuple[str, str], list[float]] = {}
        share = self._budget.seconds / self._budget.rounds
        for number in range(self._budget.rounds):
            for place in places:
                names = list(able)
                first = number % len(names) if names else 0
                for name in names[first:] + names[:first]:
                    self.order.append(name)
                    self._wait_for_sleep()
                    answer = self._ask(able[name], case, "time", place=place, budget_s=share)
                    if answer is None:
                        del able[name]
                    else:
                        taken.setdefault((name, place), []).append(float(answer["seconds"]))
        return taken

    def _wait_for_sleep(self) -> None:
        latest, looks = time.monotonic() + SPIN_S, 0
        while looks < LOOKS and time.monotonic() < latest:
            time.sleep(LOOK_S)
            looks = looks + 1 if all(process.is_idle for process in self._processes.values()) else 0

    def _checked(self, process: PeerProcess, case: Case, asked: Asked, folder: Path) -> bool:
        answer = self._ask(process, case, "results", folder=str(folder))
        if answer is None:
            return False
        for files in answer["results"].values():
            wrong = differ([np.load(file) for file in files], asked.expected)
            if wrong:
                self._problem(case.name, process.peer.name, f"wrong: {wrong}")
                return False
        return True

    def _add(self, case: Case, peer: str, places: Sequence[str], rounds: dict[tuple[str, str], list[float]]) -> None:
        setting = (self._setting.cores, self._setting.memory)
        for place in places:
            rounds_us = tuple(float(f"{seconds * 1e6:.4g}") for seconds in rounds[peer, place])
            self._record.times.append(Time(case.name, peer, *setting, place, rounds_us))

    def _ask(self, process: PeerProcess, case: Case, do: str, **question: object) -> dict[str, Any] | None:
        """The answer of a peer; None if it is lost, which is recorded as a problem."""
        try:
            return process.ask(self._budget.patience_s + self._budget.seconds, do, **question)
        except PeerLost as lost:
            del self._processes[process.peer.name]
            self._problem(case.name, process.peer.name, str(lost))
            return None

    def _problem(self, case: str, peer: str, reason: str) -> None:
        problem = Problem(case, peer, reason, self._setting.cores if case else 0)
        if problem not in self._record.problems:
            self._record.problems.append(problem)
            print(f"{peer} {case}: {reason}", file=sys.stderr, flush=True)


def _saved(arrays: Sequence[np.ndarray], folder: Path) -> list[str]:
    files: list[str] = []
    for number, array in enumerate(arrays):
        np.save(folder / f"input-{number}.npy", array)
        files.append(str(folder / f"input-{number}.npy"))
    return files
