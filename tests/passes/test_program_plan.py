"""Buffers, steps and lifetimes of a whole program."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from passes.plan.program_plan import ProgramPlan
from passes.schedule.attach import read_program
from tensorkiln.build import Builder, scatter, softmax
from tensorkiln.dtypes import DType
from tensorkiln.graph import Graph
from tests.compiled import compiled
from tests.dialect.wire import graph_of, placeholder, unary
from tests.passes.modules import after, output


def plan(graph: Graph) -> ProgramPlan:
    return read_program(after("schedule", graph))


def contiguous(var: int, source: int) -> dict[str, object]:
    return {"node": "contiguous", "in_var": source, "out_var": var, "dtype": "float32"}


def chain() -> Graph:
    """Three kernels, each of which reads the one before; their loops never line up."""
    b = Builder("chain")
    x = b.input("float32", (128, 128))
    first = x.sum(0)
    return output(b, (first.reshape(128, 1) * x).sum(0).reshape(128, 1).expand(128, 128) + x)


def test_a_temporary_lives_from_its_step_to_its_last_reader() -> None:
    found = plan(chain())
    assert len(found.steps) > 1
    for buffer in found.buffers:
        users = [
            number for number, step in enumerate(found.steps) if buffer.id in (*step.reads, *step.writes, *step.scratch)
        ]
        if buffer.role in ("temp", "scratch"):
            assert buffer.lifetime == (users[0], users[-1])
        if buffer.role == "input":
            assert buffer.lifetime == (0, len(found.steps) - 1)
        if buffer.role == "output":
            assert buffer.lifetime == (users[0], len(found.steps) - 1)


def test_steps_write_before_they_are_read() -> None:
    found = plan(chain())
    written = {buffer.id for buffer in found.buffers if buffer.role in ("input", "constant", "scratch")}
    for step in found.steps:
        assert set(step.reads) <= written
        assert written.isdisjoint(step.writes)
        written |= set(step.writes)
    assert set(found.results) <= written


def test_roles_follow_from_use() -> None:
    found = plan(chain())
    assert [found.buffers[number].role for number in found.arguments] == ["input"]
    assert [found.buffers[number].role for number in found.results] == ["output"]
    assert {buffer.role for buffer in found.buffers} >= {"input", "output", "temp"}


def test_a_table_is_a_constant_with_its_contents() -> None:
    b = Builder("table")
    graph = output(b, b.input("float32", (3,)) * b.constant([1.0, 2.0, -0.0], "float32"))
    found = plan(graph)
    contents = np.array([1.0, 2.0, -0.0], np.float32).tobytes()
    (constant,) = [buffer for buffer in found.buffers if buffer.role == "constant"]
    assert constant.artifact == hashlib.sha256(contents).hexdigest()
    assert found.artifacts == {constant.artifact: contents}
    assert constant.lifetime == (0, len(found.steps) - 1)


def test_one_buffer_may_be_several_results() -> None:
    found = plan(graph_of([placeholder(0, [4]), unary(1, 0)], [1, 0, 1]))
    first, second, third = found.results
    assert first == third
    assert second == found.arguments[0]


def test_a_graph_of_arguments_alone_has_no_steps() -> None:
    found = plan(graph_of([placeholder(0, [4])], [0]))
    assert found.steps == []
    assert [buffer.lifetime for buffer in found.buffers] == [(0, 0)]


def test_scratch_belongs_to_its_step() -> None:
    b = Builder("softmax")
    found = plan(output(b, softmax(b.input("float32", (32, 1000)), -1)))
    (step,) = found.steps
    assert len(step.scratch) == 1
    scratch = found.buffers[step.scratch[0]]
    assert (scratch.role, scratch.shape, scratch.size_bytes) == ("scratch", (1000,), 4000)
    assert scratch.id not in (*step.reads, *step.writes)


def test_scratch_may_be_added_to_a_step() -> None:
    found = plan(chain())
    before = len(found.buffers)
    found.add_scratch(0, DType.INT64, 7, is_private=True)
    found.close()
    assert found.steps[0].scratch[-1] == before
    assert found.buffers[before].lifetime == (0, 0)
    assert found.buffers[before].size_bytes == 56


def test_a_host_step_keeps_its_op() -> None:
    attributes = [{"name": "axis", "kind": "int", "value": 0}, {"name": "descending", "kind": "int", "value": 0}]
    sort = {"node": "custom", "op_name": "sort", "in_vars": [0], "attributes": attributes, "out_var": 1}
    found = plan(graph_of([placeholder(0, [4]), {**sort, "dtype": "float32"}], [1]))
    (step,) = found.steps
    assert step.kernel is None
    assert step.host is not None
    assert (step.host.kind, step.host.text("op_name")) == ("custom", "sort")
    assert (step.reads, step.writes) == (found.arguments, found.results)


@pytest.mark.parametrize("kind", ["chain", "scatter"])
def test_dependencies_are_the_steps_that_wrote_what_is_read(kind: str) -> None:
    b = Builder("scatter")
    indices, updates = b.input("int32", (4, 8)), b.input("float32", (4, 8))
    graph = chain() if kind == "chain" else output(b, -scatter(indices, updates * updates, 1, (4, 16)))
    program = compiled(graph).program
    schedule = program.schedule
    writers = {
        buffer: item.item_id
        for item in schedule.items
        for buffer in program.kernels[item.operation.kernel_id].buffers  # type: ignore[union-attr]
        if buffer in {info.buf_var for info in item.operation.outputs}  # type: ignore[union-attr]
    }
    for item in schedule.items:
        read = {info.buf_var for info in item.operation.inputs}  # type: ignore[union-attr]
        assert set(item.depends_on) == {writers[buffer] for buffer in read if buffer in writers}


def test_a_temporary_of_one_reader_is_an_opportunity_to_fuse() -> None:
    program = compiled(chain()).program
    found = program.schedule.fusion_opportunities
    assert found
    for opportunity in found:
        assert opportunity.kernel_a < opportunity.kernel_b
        assert 0 < opportunity.benefit_score < 1
    temporaries = {buffer.size_bytes for buffer in program.buffers if buffer.role == "temp"}
    assert {opportunity.memory_saved for opportunity in found} <= temporaries


def test_one_kernel_alone_offers_nothing_to_fuse() -> None:
    b = Builder("alone")
    assert compiled(output(b, softmax(b.input("float32", (32, 100)), -1))).program.schedule.fusion_opportunities == ()
