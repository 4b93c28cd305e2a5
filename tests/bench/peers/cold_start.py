"""Time from the start of a process to its first result, without caches and with those of an earlier process."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tests.bench.peers.peers import Peer
from tests.bench.peers.process import PeerLost, PeerProcess, Setting
from tests.bench.peers.record import Problem, Record, Started
from tests.bench.peers.workloads import BY_NAME

ROW = BY_NAME["E1_1M"]
LIMIT_S = 120.0
SETTING = Setting(1, "default")


def cold_starts(peers: Sequence[Peer], pythons: Mapping[str, Path], rounds: int, record: Record) -> None:
    """Add the start times of all peers to the record, interleaved, on one core, with inputs from files."""
    taken: dict[tuple[str, bool], list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "input.npy"
        (array,) = ROW.inputs()
        np.save(file, array)
        lost: set[str] = set()
        for number in range(rounds):
            for peer in peers:
                # The row has no weights to bind.
                if peer.name not in pythons or peer.has_weights or peer.name in lost:
                    continue
                home = Path(name) / f"{peer.name}-{number}"
                home.mkdir()
                try:
                    for is_kept in (False, True):
                        seconds = _started(peer, pythons, home, file)
                        taken.setdefault((peer.name, is_kept), []).append(seconds)
                except PeerLost as error:
                    lost.add(peer.name)
                    record.problems.append(Problem("cold start", peer.name, str(error)))
    for (name, is_kept), each in taken.items():
        record.started.append(Started(name, is_kept, tuple(round(seconds * 1e3, 1) for seconds in each)))


def _started(peer: Peer, pythons: Mapping[str, Path], home: Path, file: Path) -> float:
    began = time.perf_counter()
    process = PeerProcess(peer, pythons[peer.name], SETTING, home, LIMIT_S)
    process.ask(LIMIT_S, "prepare", row=ROW.name, inputs=[str(file)], places=["numpy"], once=True)
    taken = time.perf_counter() - began
    process.close()
    return taken
