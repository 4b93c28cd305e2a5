"""What a stage may leave behind: so many operations, and those that belong there."""

from __future__ import annotations

import pytest

from dialect.from_graph import from_graph
from dialect.kiln import new_context
from dialect.mlir import ir
from passes import boundary
from passes.boundary import KILN, LLVM, LOOPS
from passes.census import census, count_flat, count_nested, heaviest_nodes
from passes.compile import CompileRequest, compile_request
from passes.cpu.pipeline import cpu_pipeline
from passes.gpu.machine import machine_of as gpu_machine_of
from passes.gpu.pipeline import gpu_pipeline
from tensorkiln.build import Builder
from tensorkiln.compile_limits import MAX_OPERATIONS
from tensorkiln.errors import DiagnosticError, LimitExceededError
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tensorkiln.target import Target
from tests.passes.modules import TARGET, after, machine, output
from tests.passes.test_compile import network

PIPELINES = (
    cpu_pipeline(machine(), CompileOptions()),
    gpu_pipeline(gpu_machine_of(Target.parse("cuda:sm_90")), CompileOptions()),
)


def module(text: str) -> ir.Module:
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        return ir.Module.parse(text)


def function(body: str) -> ir.Module:
    return module(f"llvm.func @k() {{ {body}\n llvm.return }}")


def small() -> Graph:
    b = Builder("small")
    return output(b, b.input("float32", (64,)) + 1.0)


def test_operations_are_counted_by_name_however_deep_they_are() -> None:
    text = "func.func @f(%n: index) { scf.for %i = %n to %n step %n { scf.for %j = %n to %n step %n { } }\n return }"
    counts = census(module(text).operation)
    assert counts == {"builtin.module": 1, "func.func": 1, "scf.for": 2, "scf.yield": 2, "func.return": 1}


@pytest.mark.parametrize("target", [TARGET, "cuda:sm_90"])
@pytest.mark.parametrize(
    "stage", ["decompose", "form-kernels", "merge-kernels", "to-linalg", "schedule", "realise", "lower", "entries"]
)
def test_the_quick_counts_are_those_of_the_slow_one(stage: str, target: str) -> None:
    made = after(stage, network(), target)
    total = census(made.operation).total()
    assert count_nested(made) == total
    if stage not in ("to-linalg", "schedule", "realise"):
        assert count_flat(made) == total


def test_most_operations_come_from_the_nodes_that_are_named() -> None:
    line = '%{0} = arith.constant {0} : i32 loc("/nodes/{1}")\n'
    lines = [line.format(number, 7 if number > 3 else number) for number in range(40)]
    few = 'func.func @few() { return loc("/nodes/9") }\n'
    assert heaviest_nodes(module(f"{few} func.func @many() {{ {''.join(lines)} return }}"))[0] == "/nodes/7"
    assert heaviest_nodes(module("")) == ()


def test_a_module_at_the_limit_is_let_through_and_one_beyond_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    made = module('func.func @k(%x: f32) { %y = arith.addf %x, %x : f32 loc("/nodes/7")\n return }')
    monkeypatch.setattr(boundary, "MAX_OPERATIONS", 4)
    boundary.require("realise", made, LOOPS)
    monkeypatch.setattr(boundary, "MAX_OPERATIONS", 3)
    with pytest.raises(LimitExceededError, match="stage realise made 4 operations of the graph; the limit is 3: cut"):
        boundary.require("realise", made, LOOPS)


@pytest.mark.parametrize("target", [TARGET, "cuda:sm_90"])
@pytest.mark.parametrize(("most", "stage"), [(30, "from-graph"), (60, "to-linalg")])
def test_a_compile_ends_at_the_first_stage_beyond_the_limit(
    monkeypatch: pytest.MonkeyPatch, target: str, most: int, stage: str
) -> None:
    monkeypatch.setattr(boundary, "MAX_OPERATIONS", most)
    begun: list[str] = []
    with pytest.raises(LimitExceededError) as caught:
        compile_request(CompileRequest(network(), Target.parse(target)), begun.append)
    assert begun[-1] == stage
    details = caught.value.details
    assert (details["stage"], details["limit"], details["maximum"]) == (stage, "operations", most)
    assert details["actual"] > most
    assert caught.value.pointers
    assert all(pointer.startswith("/nodes/") for pointer in caught.value.pointers)


@pytest.mark.parametrize("target", [TARGET, "cuda:sm_90"])
def test_code_beyond_its_limit_is_refused(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.setattr(boundary, "MAX_CODE_BYTES", 100)
    with pytest.raises(LimitExceededError, match=r"stage codegen made .* bytes of code; the limit is 100") as caught:
        compile_request(CompileRequest(small(), Target.parse(target)))
    assert caught.value.details["limit"] == "code_bytes"
    assert caught.value.details["actual"] > 100
    assert caught.value.pointers == ("/nodes/2",)


def test_a_network_stays_far_below_the_limit() -> None:
    counts: list[int] = []
    for pipeline in PIPELINES:
        made = from_graph(network(), new_context())
        for stage in pipeline:
            made = stage.run(made)
            counts.append(census(made.operation).total())
    assert 500 < max(counts) < MAX_OPERATIONS // 1000


@pytest.mark.parametrize(
    ("text", "allowed", "names"),
    [
        ('"kiln.left"() : () -> () loc("/nodes/3")', LLVM, ["kiln.left"]),
        ('"gpu.barrier"() : () -> () loc("/nodes/3")', LLVM, ["gpu.barrier"]),
        ('llvm.inline_asm "nop", "" : () -> () loc("/nodes/3")', LLVM, ["llvm.inline_asm"]),
        ('llvm.call_intrinsic "llvm.trap"() : () -> () loc("/nodes/3")', LLVM, ["llvm.call_intrinsic"]),
    ],
)
def test_foreign_ops_are_named_with_their_node(text: str, allowed: frozenset[str], names: list[str]) -> None:
    with pytest.raises(DiagnosticError, match=f"stage lower left operations .*: {names[0]}") as caught:
        boundary.require("lower", function(text), allowed)
    assert caught.value.details == {"stage": "lower", "operations": names}
    assert caught.value.pointers == ("/nodes/3",)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("%0 = arith.maxsi %a, %a : i32", "arith.maxsi"),
        ("%0 = builtin.unrealized_conversion_cast %a : i32 to i32", "builtin.unrealized_conversion_cast"),
    ],
)
def test_foldable_ops_are_reported_and_kept(line: str, name: str) -> None:
    made = module(f"llvm.func @k(%a: i32) -> i32 {{ {line}\n llvm.return %0 : i32 }}")
    before = str(made)
    with pytest.raises(DiagnosticError, match=f"operations that do not belong there: {name}"):
        boundary.require("lower", made, LLVM)
    assert str(made) == before


def test_a_pointer_is_taken_for_another_until_it_is_lowered() -> None:
    cast = "builtin.unrealized_conversion_cast"
    text = f"func.func private @f(%a: memref<f32>) {{ %0 = {cast} %a : memref<f32> to memref<i32>\n return }}"
    boundary.require("realise", module(text), LOOPS)
    with pytest.raises(DiagnosticError, match=f"operations that do not belong there: {cast}"):
        boundary.require("schedule", module(text), KILN)


@pytest.mark.parametrize("kind", ["ctors", "dtors"])
def test_code_that_runs_outside_of_kernels_is_refused(kind: str) -> None:
    listed = f"llvm.mlir.global_{kind} {kind} = [@k], priorities = [0 : i32], data = [#llvm.zero]"
    with pytest.raises(DiagnosticError, match=f"llvm.mlir.global_{kind}"):
        boundary.require("entries", module(f"{listed}\nllvm.func @k() {{ llvm.return }}"), LLVM)


def test_a_stage_that_leaves_what_is_of_an_earlier_one_is_refused() -> None:
    text = "func.func @k(%x: f32) -> f32 { return %x : f32 }"
    boundary.require("schedule", module(text), KILN)
    boundary.require("realise", module(text), LOOPS)
    with pytest.raises(DiagnosticError, match=r"func\.func, func\.return"):
        boundary.require("lower", module(text), LLVM)


def test_nothing_of_the_kiln_dialect_passes_to_linalg_and_nothing_but_llvm_passes_lower() -> None:
    for pipeline in PIPELINES:
        left = {stage.name: stage.leaves for stage in pipeline}
        assert "kiln" not in left["realise"]
        assert left["lower"] == left["entries"]
        assert left["entries"] <= {"builtin", "llvm", "nvvm"}
