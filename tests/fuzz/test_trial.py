"""What the fuzzer makes of compiled code that crashes, is wrong, or is refused: each is told from what is right."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from passes.compile import Compilation
from tensorkiln.build import Builder, relu
from tensorkiln.errors import DiagnosticError, UnsupportedGraphError
from tensorkiln.graph import Graph
from tensorkiln.reference.precision import Array

from .composer import Case, Way
from .coverage import Coverage, op_of
from .exploration import GraphFailure, explore, kept
from .oracles import Run, judge, run_here
from .trial import Trials, read, written
from .verdict import Verdict


def layer() -> Case:
    b = Builder("layer")
    y = b.input("float32", (b.symbol("n", 1, 64), 16)) @ b.input("float32", (16, 24))
    b.output(relu(y), y < 0)
    return Case(b.graph(), {"n": 9}, 5, (Way("cpu:x86-64-v3"), Way("cpu:x86-64-v3", fusion=False)))


def test_a_right_program_has_no_problem_and_its_kernels_are_counted() -> None:
    verdict = judge(layer())
    assert verdict.problem == ""
    assert verdict.strategies["cpu contraction"] == 2
    assert verdict.ways == {"cpu:x86-64-v3": 1, "cpu:x86-64-v3:unfused": 1}
    assert verdict.elements["unknown"] == 0
    assert verdict.elements.total() == 2 * 9 * 24


def off_by(place: int, change: float) -> Run:
    def run(compilation: Compilation, *arrays: Array, seed: int, **symbols: int) -> Sequence[Array]:
        results = [np.array(result) for result in run_here(compilation, *arrays, seed=seed, **symbols)]
        results[place].reshape(-1)[7] += np.asarray(change).astype(results[place].dtype)
        return results

    return run


@pytest.mark.parametrize(("place", "change"), [(0, 1e-2), (1, True)])
def test_one_wrong_element_is_a_problem(place: int, change: float) -> None:
    problem = judge(layer(), off_by(place, change)).problem
    assert problem.startswith(f"output {place} of cpu:x86-64-v3 ")
    assert "1 of 216 differ by more" in problem


def test_an_input_that_is_written_to_is_a_problem() -> None:
    def run(compilation: Compilation, *arrays: Array, seed: int, **symbols: int) -> Sequence[Array]:
        results = run_here(compilation, *arrays, seed=seed, **symbols)
        arrays[1][3, 3] += 1
        return results

    assert judge(layer(), run).problem == "cpu:x86-64-v3:unfused: input 1 has been written to"


def refusing(error: Exception) -> Verdict:
    def run(_compilation: Compilation, *_arrays: Array, **_named: int) -> Sequence[Array]:
        raise error

    return judge(layer(), run)


def test_a_typed_refusal_is_counted_and_no_problem() -> None:
    verdict = refusing(UnsupportedGraphError("an axis of 5 is longer than 4"))
    assert verdict.problem == ""
    assert verdict.refused == {"graph.unsupported: an axis of # is longer than #": 2}


def test_a_diagnostic_of_the_compiler_is_a_problem() -> None:
    assert "DiagnosticError: a type does not match" in refusing(DiagnosticError("a type does not match")).problem


def test_an_error_that_is_not_ours_leaves_the_judge() -> None:
    with pytest.raises(IndexError, match="out of range"):
        refusing(IndexError("out of range"))


def test_a_case_is_read_as_it_was_written() -> None:
    case = layer()
    again = read(written(case))
    assert again == case


@pytest.fixture(scope="module")
def badly() -> Iterator[Trials]:
    with Trials("tests.fuzz.endings") as made:
        yield made


@pytest.mark.parametrize(
    ("name", "problem"),
    [("fault", "a crash by SIGSEGV: "), ("seven", "an error that is not ours: .*ZeroDivisionError: of seven$")],
)
def test_a_process_that_ends_badly_is_a_problem_and_the_next_one_runs(name: str, problem: str, badly: Trials) -> None:
    b = Builder(name)
    b.output(-b.input("float32", (3,)))
    for _ in range(2):
        assert re.match(problem, badly.of(Case(b.graph(), {}, 0, ())).problem, re.DOTALL)


def test_a_failure_is_made_simple_and_kept_as_a_graph(tmp_path: Path) -> None:
    """Of many graphs that have an exponential, most with dozens of nodes, one of the simplest is told."""
    sizes: list[int] = []

    def judged(case: Case) -> Verdict:
        has_one = any(op_of(node) == "unary.exp2" for node in case.graph.nodes)
        sizes.append(len(case.graph.nodes))
        return Verdict("an exponential" if has_one else "")

    with pytest.raises(GraphFailure, match="an exponential") as caught:
        explore("behind_products", 100, 1, judged, Coverage())
    case = caught.value.case
    assert [op_of(node) for node in case.graph.nodes] == ["placeholder", "unary.exp2"]
    assert max(sizes) > 30
    path = kept(caught.value, tmp_path / "failures", "exponential")
    assert Graph.model_validate_json(path.read_text()) == case.graph
    assert f"again {path} --seed {case.seed} --way {case.ways[0].target}" in path.with_suffix(".txt").read_text()
