"""Lines of the texts of stages, down to the assembly, name the nodes that they come from; the code is the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from dialect.kiln import new_context
from passes import compile as compile_module
from passes.codegen import nvptx, object_code
from passes.compile import Compilation, CompileRequest, compile_request
from tensorkiln.build import Builder, Tensor, relu, softmax
from tensorkiln.canonical import canonicalize
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tensorkiln.target import Target

TARGETS = ("cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64", "cuda:sm_90")


def layer() -> Graph:
    """A product with a bias, and a sum of exponentials."""
    b = Builder("layer")
    n = b.symbol("n", 1, 4096)
    x, w, bias = b.input("float32", (n, 64)), b.input("float32", (64, 10)), b.input("float32", (10,))
    b.output(relu(x @ w + bias))
    b.output((x * x + 1.0).exp2().sum(axis=1))
    return b.graph()


def twice() -> Graph:
    """Two kernels that are one function."""
    b = Builder("twice")
    x, y = b.input("float32", (8, 64)), b.input("float32", (8, 64))
    b.output((x * x + 2.0).sum(axis=1))
    b.output((y * y + 2.0).sum(axis=1))
    return b.graph()


def attention() -> Graph:
    b = Builder("attention")
    q, k, v = (b.input("float32", (4, 32, 16)) for _ in range(3))
    b.output(softmax(q @ k.permute(0, 2, 1), axis=-1) @ v)
    return b.graph()


def sized() -> Graph:
    """Kernels that differ in sizes alone: their bodies become one in LLVM IR."""
    b = Builder("sized")
    n = b.symbol("n", 1, 4096)
    for columns in (80, 112, 208):
        x = b.input("float32", (n, columns))
        b.output((x * x + 2.0).sum(axis=0))
    return b.graph()


GRAPHS: tuple[Callable[[], Graph], ...] = (layer, twice, attention, sized)


@cache
def compiled(make: Callable[[], Graph], target: str, *, dump_stages: bool = True) -> Compilation:
    """What `make` makes, compiled once for all tests."""
    options = CompileOptions(dump_stages=dump_stages)
    return compile_request(CompileRequest(make(), Target.parse(target), options))


def nodes_of_lines(made: Compilation, stage: str) -> dict[int, set[int]]:
    """The nodes of each line of a text that has some, as the texts number them."""
    table: dict[str, Any] = json.loads(made.dumps["origins"])
    calls: list[dict[str, Any]] = table["calls"]

    def nodes(group: int) -> set[int]:
        found: set[int] = set()
        for kernel, is_loops, members in (table["origins"][origin] for origin in table["groups"][group]):
            for call in (each for each in calls if each["kernel"] == kernel):
                for member in members:
                    found |= set(call["roots"][member]) if is_loops else {call["body"][member]}
        return found

    lines: dict[int, set[int]] = {}
    runs, at = iter(table["lines"][stage]), 0
    for without, count, group in zip(runs, runs, runs, strict=True):
        at += without
        for _ in range(count):
            lines[at] = nodes(group)
            at += 1
    return lines


def of_lines(made: Compilation, stage: str, wanted: str) -> list[set[int]]:
    """The nodes of the lines of a text in which a word is."""
    lines = made.dumps[stage].split("\n")
    return [nodes for line, nodes in nodes_of_lines(made, stage).items() if wanted in lines[line]]


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("target", TARGETS)
def test_the_code_is_the_same_with_and_without_texts(graph: Callable[[], Graph], target: str) -> None:
    assert compiled(graph, target).artifacts == compiled(graph, target, dump_stages=False).artifacts


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("target", TARGETS)
def test_the_listing_is_that_of_the_code(graph: Callable[[], Graph], target: str) -> None:
    made = compiled(graph, target)
    emit = nvptx.emit if target.startswith("cuda") else object_code.assembly
    assert made.dumps["codegen"] == emit(made.dumps["translate"], Target.parse(target))
    assert nodes_of_lines(made, "codegen")


def test_a_line_is_of_the_node_that_it_computes() -> None:
    graph = layer()
    (node,) = [at for at, each in enumerate(canonicalize(graph).graph.nodes) if getattr(each, "op", None) == "max"]
    made = compiled(layer, "cpu:x86-64-v3")
    for stage, word in {"lower": 'llvm.fcmp "ugt"', "translate": "fcmp ugt", "codegen": "vcmpnleps"}.items():
        found = of_lines(made, stage, word)
        assert found, stage
        assert all(nodes == {node} for nodes in found), stage


def lines() -> Graph:
    b = Builder("lines")
    x = b.input("float32", (1000,))
    b.output((x * 3.0).sqrt() + 5.0)
    return b.graph()


def test_a_line_of_ptx_is_of_the_node_that_it_computes() -> None:
    kinds = {getattr(each, "op", None): at for at, each in enumerate(canonicalize(lines()).graph.nodes)}
    made = compiled(lines, "cuda:sm_90")
    for word, kind in {"sqrt.rn.f32": "sqrt", "mul.rn.f32": "mul", "add.rn.f32": "add"}.items():
        found = of_lines(made, "codegen", word)
        assert found, word
        assert all(nodes == {kinds[kind]} for nodes in found), word


def test_every_stage_below_the_schedule_knows_every_node_that_computes() -> None:
    canonical = canonicalize(layer()).graph
    computing = {at for at, node in enumerate(canonical.nodes) if node.node in ("binop", "unary", "reduce_axis")}
    for target in ("cpu:x86-64-v3", "cuda:sm_90"):
        made = compiled(layer, target)
        for stage in ("to-linalg", "schedule", "realise", "lower", "translate", "codegen"):
            known = set[int]().union(*nodes_of_lines(made, stage).values())
            assert computing <= known, (target, stage)


@pytest.mark.parametrize("graph", [twice, sized])
def test_code_that_kernels_share_is_of_the_nodes_of_all(graph: Callable[[], Graph]) -> None:
    made = compiled(graph, "cpu:x86-64-v3")
    table: dict[str, Any] = json.loads(made.dumps["origins"])
    everything = {node for call in table["calls"] for node in call["nodes"]}
    (first, *_) = table["calls"]
    for stage in ("translate", "codegen"):
        known = nodes_of_lines(made, stage).values()
        assert any(nodes & set(first["nodes"]) and nodes - set(first["nodes"]) for nodes in known), stage
        assert set[int]().union(*known) >= {node for node in everything if node in first["roots"][0]}, stage


def test_functions_that_kernels_share_are_of_no_kernel() -> None:
    made = compiled(layer, "cpu:x86-64-v3")
    lines = made.dumps["lower"].split("\n")
    known = nodes_of_lines(made, "lower")
    inside = False
    for at, line in enumerate(lines):
        inside = "@pack_" in line if "llvm.func" in line else inside
        assert not (inside and at in known), line


def test_a_program_without_texts_says_nothing_of_origins() -> None:
    made = compiled(layer, "cpu:x86-64-v3", dump_stages=False)
    assert made.dumps == {}
    assert "origins" not in [stage.name for stage in made.program.stages]


def test_the_origins_of_programs_in_a_context_are_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def origins(function: Callable[[Tensor], Tensor]) -> str:
        """Those of a kernel after another one."""
        b = Builder("rows")
        b.output(function(b.input("float32", (8, 64))))
        b.output(softmax(b.input("float32", (9, 65)) * 2.0))
        request = CompileRequest(b.graph(), Target.parse("cpu:x86-64-v3"), CompileOptions(dump_stages=True))
        return compile_request(request).dumps["origins"]

    alone = origins(softmax), origins(relu)
    context = new_context()
    monkeypatch.setattr(compile_module, "new_context", lambda: context)
    assert (origins(softmax), origins(relu)) == alone
