"""Values that all turns of a loop read: they are prepared once, before the first turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorkiln import build
from tensorkiln.build import Builder, Tensor, while_loop
from tensorkiln.graph import Graph
from tensorkiln.program import Program
from tensorkiln.reference import evaluate
from tensorkiln.spec import CompiledProgram
from tests import checked
from tests.compiled import compiled, program

Array = np.ndarray[Any, Any]
Turn = Callable[[Tensor, Tensor], Tensor]
WIDTH = 48


def looped(turn: Turn, rows: int | str = 3, *, is_bound: bool = False) -> Graph:
    """`x = turn(x, weights)`, as often as the second input says."""
    b = Builder("looped")
    x = b.input("float32", (b.symbol(rows, 0, 9) if isinstance(rows, str) else rows, WIDTH))
    turns = b.input("int32")
    weights = b.parameter("float32", (WIDTH, WIDTH)) if is_bound else b.input("float32", (WIDTH, WIDTH))

    def body(i: Tensor, x: Tensor, turns: Tensor, weights: Tensor) -> list[Tensor]:
        return [i + 1, turn(x, weights)]

    b.output(*while_loop(lambda i, x, turns, _: i < turns, body, [b.constant(0), x], [turns, weights]))
    return b.graph()


def arrays(rows: int = 3, turns: int = 4) -> tuple[Array, Array, Array]:
    random = np.random.default_rng(5)
    shapes = (rows, WIDTH), (WIDTH, WIDTH)
    x, weights = (random.standard_normal(shape).astype(np.float32) * np.float32(0.3) for shape in shapes)
    return x, np.array(turns, np.int32), weights


def body_of(record: CompiledProgram) -> CompiledProgram:
    """The body of the one loop."""
    (loop,) = (item.operation for item in record.schedule.items if item.operation.op == "loop")
    return record.inner[loop.body]


def product(x: Tensor, weights: Tensor) -> Tensor:
    return build.tanh(x @ weights)


def computed(x: Tensor, weights: Tensor) -> Tensor:
    """A sum over the weights, and a product with all of them changed."""
    return (x @ build.tanh(weights)) * 0.5 + build.exp(weights).sum(0) * 0.01


def replaced(x: Tensor, weights: Tensor) -> Tensor:
    """From the second turn on, nothing that is carried matters."""
    return build.exp(weights)[: x.shape[0]] if isinstance(x.shape[0], int) else x


def sorted_first(x: Tensor, weights: Tensor) -> Tensor:
    """A host callback, so that Python runs the turns."""
    axis = {"name": "axis", "kind": "int", "value": 1}
    rows = x.builder.append("custom", x.dtype, x.shape, op_name="sort", in_vars=[x.var], attributes=[axis])
    return product(rows, weights)


def repeated(x: Tensor, weights: Tensor) -> Tensor:
    """A loop of two turns in each turn."""
    body = [x.builder.constant(0), x]
    return while_loop(lambda i, x, _: i < 2, lambda i, x, w: [i + 1, product(x, w)], body, [weights])[1]


TURNS: dict[str, Turn] = {
    "product": product,
    "computed": computed,
    "replaced": replaced,
    "callback": sorted_first,
}


@pytest.mark.parametrize("name", [*TURNS, "repeated"])
@pytest.mark.parametrize("turns", [0, 1, 2, 5])
def test_prepared_loops_compute_what_the_reference_does(name: str, turns: int) -> None:
    graph = looped({**TURNS, "repeated": repeated}[name])
    given = arrays(turns=turns)
    expected = evaluate(graph, *given)
    made = compiled(graph)
    calls = program(made), program(made, 2)
    for found in (*(call(*given) for call in calls for _ in range(2)), checked.run(made, *given, threads=2)):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, 1e-5, 1e-5)


@pytest.mark.parametrize("name", TURNS)
def test_a_body_prepares_what_no_turn_changes(name: str) -> None:
    record = compiled(looped(TURNS[name])).program
    body = body_of(record)
    assert body.prepare
    assert record.abi == 4
    assert [binding.is_parameter for binding in body.inputs] == [False, False, True, True]
    assert CompiledProgram.model_validate_json(record.model_dump_json()) == record


def test_the_innermost_body_prepares() -> None:
    record = compiled(looped(repeated)).program
    outer = body_of(record)
    assert not outer.prepare
    assert body_of(outer).prepare
    assert record.abi == outer.abi == 4


def test_the_rows_of_prepared_loops_may_be_a_symbol() -> None:
    graph = looped(computed, "rows", is_bound=True)
    made = compiled(graph)
    call = program(made)
    for rows, turns in ((0, 3), (1, 3), (8, 0), (5, 6)):
        x, count, weights = arrays(rows, turns)
        expected = evaluate(graph, x, count, weights, rows=rows)
        for found in (call(x, count, weights, rows=rows), checked.run(made, x, count, weights, rows=rows)):
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, 1e-5, 1e-5)


def test_new_weights_are_prepared_again() -> None:
    graph = looped(product)
    call = program(compiled(graph))
    x, turns, weights = arrays()
    for factor in (1, 2, 1):
        changed = weights * np.float32(factor)
        np.testing.assert_allclose(call(x, turns, changed)[1], evaluate(graph, x, turns, changed)[1], 1e-5, 1e-5)


def test_a_loop_that_prepares_nothing_has_no_parameters() -> None:
    record = compiled(looped(lambda x, weights: x + weights[: x.shape[0]])).program  # pyright: ignore[reportArgumentType]
    assert record.abi == 3
    assert not any(binding.is_parameter for inner in record.inner for binding in inner.inputs)


def test_a_gpu_runs_everything_at_each_turn() -> None:
    record = compiled(looped(computed), "cuda:sm_80").program
    assert record.abi < 4
    assert not any(inner.prepare for inner in record.inner)


def test_a_changed_value_is_no_parameter_of_a_body() -> None:
    made = compiled(looped(product))
    for number in range(2):
        record = made.program.model_dump(mode="json")
        loop = next(item["operation"] for item in record["schedule"]["items"] if item["operation"]["op"] == "loop")
        inputs = record["inner"][loop["body" if number else "condition"]]["inputs"]
        inputs[1 if number else 2]["is_parameter"] = True
        with pytest.raises(ValueError, match="has a parameter that it changes, or its condition prepares values"):
            CompiledProgram.model_validate(record)


def test_the_condition_of_a_loop_prepares_nothing() -> None:
    b = Builder("constant")
    x, turns = b.input("float32", (WIDTH,)), b.input("int32")

    def goes_on(i: Tensor, _x: Tensor, turns: Tensor) -> Tensor:
        table = i.builder.constant(arrays()[2])
        return (i < turns) & ((build.exp(table) @ build.tanh(table)).sum() < 1e6)

    b.output(*while_loop(goes_on, lambda i, x, _: [i + 1, x + 1.0], [b.constant(0), x], [turns]))
    record = compiled(b.graph()).program.model_dump(mode="json")
    (loop,) = (item["operation"] for item in record["schedule"]["items"] if item["operation"]["op"] == "loop")
    record["inner"][loop["condition"]]["prepare"] = [0]
    record["abi"] = 4
    with pytest.raises(ValueError, match="its condition prepares values"):
        CompiledProgram.model_validate(record)


def test_prepared_loops_need_their_abi() -> None:
    made = compiled(looped(product))
    record = made.program.model_dump(mode="json")
    record["abi"] = 3
    with pytest.raises(ValueError, match="of the ABI 3 has parameters"):
        CompiledProgram.model_validate(record)
    assert Program(made.program, made.artifacts.__getitem__).planned_peak_bytes() > WIDTH * WIDTH * 4
