"""The comparison with real peers at small sizes: interleaving, and records of wrong or missing peers."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorkiln.reference import evaluate
from tests.bench.peers import on_numpy, report
from tests.bench.peers.__main__ import write
from tests.bench.peers.cases import cases, differ
from tests.bench.peers.cold_start import cold_starts
from tests.bench.peers.engine import CannotExpress, Task
from tests.bench.peers.environments import pythons
from tests.bench.peers.machine import machine
from tests.bench.peers.on_tensorkiln import graph_of
from tests.bench.peers.peers import BY_NAME, PEERS, REQUIREMENTS, Peer
from tests.bench.peers.process import PeerProcess, Setting
from tests.bench.peers.record import Problem, Record
from tests.bench.peers.serve import LINE, PLACES, placed
from tests.bench.peers.turns import Budget, Turns
from tests.bench.peers.workloads import ROWS, Row

OURS, NUMPY = BY_NAME["tensorkiln"], replace(BY_NAME["numpy"], environment="")
BOUND = BY_NAME["tensorkiln-bound"]
CASES = {case.name: case for case in cases(is_small=True)}


def faulty(name: str, fault: str) -> Peer:
    """The peer of this name with an injected fault."""
    return replace(BY_NAME[name], module="tests.bench.faulty_peer", environment="", variant=fault)


def run(peers: Sequence[Peer], names: Sequence[str], budget: Budget) -> tuple[Record, list[str]]:
    """The record of the cases, and the order in which the peers were timed."""
    record = Record(machine(), kinds={name: CASES[name].kind for name in names})
    found, missing = pythons(peers, install=False)
    assert not missing
    with Turns(peers, found, Setting(1, "warm"), budget, record) as turns:
        for name in names:
            turns.measure(CASES[name], ("aligned",))
        return record, turns.order


@pytest.fixture(scope="module")
def measured() -> tuple[Record, list[str]]:
    peers = (OURS, BOUND, NUMPY, faulty("jax", "wrong"))
    return run(peers, ("E1_1M", "P1", "gpt_step"), Budget(0.003, rounds=3))


@pytest.fixture(scope="module")
def record(measured: tuple[Record, list[str]]) -> Record:
    return measured[0]


def test_peers_are_timed_by_turns_and_another_begins_each_round(measured: tuple[Record, list[str]]) -> None:
    ours, bound, numpy = "tensorkiln", "tensorkiln-bound", "numpy"
    two = [ours, numpy, numpy, ours, ours, numpy]
    three = [ours, bound, numpy, bound, numpy, ours, numpy, ours, bound]
    assert measured[1] == [*two, *three, ours, ours, ours]


def test_a_peer_is_timed_when_the_threads_of_all_peers_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    ask = PeerProcess.ask

    def watched(process: PeerProcess, limit_s: float, do: str, **question: Any) -> dict[str, Any]:
        if do == "time":
            asked.extend(each.is_idle for each in processes)
        answer = ask(process, limit_s, do, **question)
        processes.add(process)
        if do == "time" and process.peer.variant == "spinning":
            assert not process.is_idle
        return answer

    processes: set[PeerProcess] = set()
    monkeypatch.setattr(PeerProcess, "ask", watched)
    run((NUMPY, faulty("jax", "spinning")), ("E1_1M",), Budget(0.003, rounds=3))
    assert asked == [True] * 12


def test_every_round_of_every_peer_is_recorded(record: Record) -> None:
    timed = {(time.case, time.peer) for time in record.times}
    rows = {(row, peer) for row in ("E1_1M", "P1") for peer in ("tensorkiln", "numpy")}
    assert timed == rows | {("P1", "tensorkiln-bound"), ("gpt_step", "tensorkiln")}
    assert all(len(time.rounds_us) == 3 and min(time.rounds_us) > 0 for time in record.times)
    assert {(each.case, each.peer) for each in record.compiled} >= timed


def test_a_peer_with_a_wrong_result_has_no_time_but_a_reason(record: Record) -> None:
    wrong = {problem.case: problem.reason for problem in record.problems if problem.peer == "jax"}
    assert re.fullmatch(r"wrong: a result is off by [\d.e+-]+ of what is right", wrong["E1_1M"])
    assert wrong.keys() == {"E1_1M", "P1", "gpt_step"}


def test_a_peer_that_cannot_express_a_case_says_why(record: Record) -> None:
    assert Problem("gpt_step", "numpy", "reads no ONNX", 1) in record.problems


def test_a_peer_that_is_lost_or_late_is_started_again_for_the_next_case() -> None:
    peers = (NUMPY, faulty("jax", "lost"), faulty("torch", "late"))
    record, _ = run(peers, ("R1", "E2"), Budget(0.0, rounds=1, patience_s=1.0))
    assert {(problem.case, problem.peer): problem.reason for problem in record.problems} == {
        ("R1", "jax"): "RuntimeError: in module.py: no more of it",
        ("R1", "torch"): "no answer within 1 s",
    }
    assert {time.peer for time in record.times if time.case == "E2"} == {"numpy", "jax", "torch"}
    assert {time.peer for time in record.times if time.case == "R1"} == {"numpy"}


def test_a_peer_that_does_not_start_is_a_problem_of_all_cases() -> None:
    record, order = run([replace(NUMPY, module="tests.bench.nowhere")], ["R1"], Budget(0.0, rounds=1))
    reason = "ModuleNotFoundError: No module named 'tests.bench.nowhere'"
    assert (record.problems, order, record.times) == ([Problem("", "numpy", reason)], [], [])


def test_peers_run_on_as_many_processors_as_they_are_given() -> None:
    allowed = os.sched_getaffinity(0)
    run([NUMPY], ["O1"], Budget(0.0, rounds=1))
    assert os.sched_getaffinity(0) == allowed


def test_a_cold_start_is_timed_with_nothing_kept_and_with_what_is_kept() -> None:
    record = Record()
    cold_starts([NUMPY, faulty("jax", "lost")], pythons([NUMPY, faulty("jax", "lost")], install=False)[0], 1, record)
    assert {(each.peer, each.is_kept) for each in record.started} == {("numpy", False), ("numpy", True)}
    assert [(problem.case, problem.peer) for problem in record.problems] == [("cold start", "jax")]


def test_a_peer_without_an_environment_is_named_with_the_reason(tmp_path: Path) -> None:
    jax = BY_NAME["jax"]
    found, missing = pythons([OURS, jax], install=False, folder=tmp_path)
    assert found.keys() == {"tensorkiln"}
    assert missing == {"jax": "not installed: `make bench-peers` does it"}


def test_an_environment_that_cannot_be_made_is_named_with_what_pip_said(tmp_path: Path) -> None:
    (tmp_path / "jax.txt").write_text("./nowhere")
    _, missing = pythons([BY_NAME["jax"]], install=True, folder=tmp_path / "made", requirements=tmp_path)
    assert missing["jax"].startswith("cannot be installed: ERROR: ")
    assert str(tmp_path) not in missing["jax"]


def test_every_environment_is_pinned() -> None:
    named = {peer.environment for peer in PEERS} - {""}
    assert {path.stem for path in REQUIREMENTS.glob("*.txt")} == named
    lines = [line for name in named for line in (REQUIREMENTS / f"{name}.txt").read_text().splitlines()]
    assert [line for line in lines if not re.fullmatch(r"#.*|[\w-]+==[\d.]+", line)] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_the_same_in_numpy_and_as_a_graph(row: Row) -> None:
    inputs = row.inputs(is_small=True)
    with np.errstate(invalid="ignore"):
        expected = [np.asarray(row.expected(*inputs))]
        assert differ([np.asarray(on_numpy.ROWS[row.name](*inputs))], expected) == ""
    assert differ(evaluate(graph_of(Task(row.name, inputs)), *inputs), expected) == ""


def test_a_task_that_a_peer_has_no_words_for_is_refused() -> None:
    with pytest.raises(CannotExpress, match="reads no ONNX"):
        on_numpy.engine(1, "").write(Task("squeezenet", []))


def test_results_differ_by_shape_by_value_and_by_nan() -> None:
    right = np.ones((2, 3))
    assert differ([right.astype(np.float32)], [right]) == ""
    assert differ([np.zeros(7), right], [right]) == "", "only the last results are those asked for"
    assert differ([right.T], [right]) == "the shape is (3, 2), not (2, 3)"
    assert differ([right * 1.001], [right]).startswith("a result is off")
    assert differ([right * np.nan], [right]).startswith("a result is off")


@pytest.mark.parametrize("place", PLACES)
def test_inputs_begin_where_they_should(place: str) -> None:
    array = np.arange(1000, dtype=np.int32).reshape(10, 100)
    copy = placed(array, place)
    assert copy.ctypes.data % LINE == PLACES[place]
    np.testing.assert_array_equal(copy, array)


def test_the_page_keeps_what_is_outside_the_markers(record: Record, tmp_path: Path) -> None:
    page, figures, picture = (tmp_path / name for name in ("page.md", "figures.json", "picture.svg"))
    page.write_text(f"before\n\n{report.BEGIN}\nold\n{report.END}\n\nafter\n")
    write(record, page, figures, picture)
    text = page.read_text()
    assert text.startswith(f"before\n\n{report.BEGIN}\n\nMeasured on: processor: ")
    assert text.endswith(f"\n\n{report.END}\n\nafter\n")
    assert "\nold\n" not in text
    assert "](picture.svg)" in text
    assert "| P1 | softmax(relu(x·w + b)·w + b), 64x784, 512, 10 |" in text
    assert Record.read(figures) == record
    write(Record.read(figures), page, figures, picture)
    assert page.read_text() == text
