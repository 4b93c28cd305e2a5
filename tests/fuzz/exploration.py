"""Graphs of a family one after the other; the first that fails is made as simple as hypothesis can."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from .composer import Case
from .coverage import Coverage
from .families import graphs
from .simpler import simplest
from .trial import written
from .verdict import Verdict

Judge = Callable[[Case], Verdict]
_MOST_TURNS = 1000
_UNCHECKED = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)


class GraphFailure(AssertionError):
    """A graph of which compiled code crashes, is refused as nothing should be, or gives another result."""

    def __init__(self, case: Case, problem: str) -> None:
        super().__init__(problem)
        self.case = case
        self.problem = problem

    def __str__(self) -> str:
        case = self.case
        ways = " ".join(f"--way {way}" for way in case.ways)
        symbols = " ".join(f"--symbol {name}={value}" for name, value in case.symbols.items())
        return (
            f"{self.problem}\n{len(case.graph.nodes)} nodes; as `kiln run` takes it:\n{case.graph.to_json()}\n"
            f"with that in graph.json: python -m tests.fuzz again graph.json --seed {case.seed} {ways} {symbols}\n"
        )


def explore(family: str, count: int, number: int, judge: Judge, coverage: Coverage) -> None:
    """Judge so many graphs, drawn from `number`. GraphFailure, with the simplest graph found, when one fails."""
    judged: dict[str, str] = {}

    def problem_of(case: Case) -> str:
        text = written(case)
        if text not in judged:
            verdict = judge(case)
            coverage.add(family, case, verdict)
            judged[text] = verdict.problem
        return judged[text]

    # Of many graphs that hypothesis draws in one go, most are like one another, and the first is always the simplest.
    turn = 0
    while len(judged) < count:
        try:
            _draw(family, number * _MOST_TURNS + turn, problem_of)
        except GraphFailure as failure:
            raise GraphFailure(*simplest(failure.case, problem_of)) from None
        turn += 1


def _draw(family: str, number: int, problem_of: Callable[[Case], str]) -> None:
    """The simplest graph and another one, which is made as simple as it gets when it fails."""

    @seed(number)
    @settings(
        max_examples=2,
        database=None,
        deadline=None,
        derandomize=True,
        phases=(Phase.generate, Phase.shrink),
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=_UNCHECKED,
    )
    @given(graphs(family))
    def agrees(case: Case) -> None:
        if problem := problem_of(case):
            raise GraphFailure(case, problem)

    agrees()


def kept(failure: GraphFailure, folder: Path, name: str) -> Path:
    """Write the graph and what is wrong with it; the path of the graph."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(failure.case.graph.to_json())
    path.with_suffix(".txt").write_text(str(failure).replace("graph.json", str(path)))
    return path
