"""Negative controls: compilers with one deliberate defect, which the check must detect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dialect.mlir import arith, ir, vector
from passes.compile import Compilation
from passes.cpu import block_product, chain, contraction, pack_function, realise, rows, scatter_row
from passes.loops.body import KernelBody, Stage, inner_loops
from passes.loops.domain import Loop, extent_of
from passes.schedule import nests
from tensorkiln import expr
from tensorkiln.build import Builder, Tensor, softmax
from tensorkiln.build import scatter as scattered
from tensorkiln.expr import Dim
from tensorkiln.graph import Graph
from tests import checked
from tests.bounds import accesses
from tests.checked import CheckedFault
from tests.checked.trap import SAYS_STORES
from tests.compiled import compiled, runs_here
from tests.passes.modules import realised

pytestmark = pytest.mark.skipif(not SAYS_STORES, reason="this processor does not say whether an access was a store")

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(3)


@pytest.fixture(params=["cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:native"])
def target(request: pytest.FixtureRequest) -> str:
    """Targets that this machine can run; they differ in vectors, masks and gathers."""
    if not runs_here(request.param):
        pytest.skip(f"this machine cannot run {request.param}")
    return request.param


def graph_of(function: Callable[..., Tensor], *arrays: Array) -> Graph:
    b = Builder("control")
    b.output(function(*(b.input(str(array.dtype), array.shape) for array in arrays)))
    return b.graph()


def draw(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def refused(compilation: Compilation, *arrays: Array) -> tuple[str, str, int]:
    """The fault of a wrong program: its kernel, the access and the role of the buffer, and the byte."""
    with pytest.raises(CheckedFault) as caught:
        checked.run(compilation, *arrays)
    fault = caught.value
    assert fault.buffer is not None, fault
    assert fault.offset is not None, fault
    role, verb = compilation.program.buffers[fault.buffer].role, str(fault).split()[1]
    assert f"buffer {fault.buffer} ({role} " in str(fault)
    return fault.kernel, f"{verb} {role} {fault.buffer}", fault.offset


def unproven(graph: Graph, target: str) -> set[str]:
    """The buffers with an access that is not proven to be in bounds, with the current (patched) compiler."""
    return {access.buffer for access in accesses(realised(graph, target)) if not access.is_proven}


def test_a_row_too_many_of_the_loops_is_refused(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    array = draw(5, 7)
    graph = graph_of(lambda x: x.max(axis=1), array)
    checked.run(compiled(graph, target), array)
    assert unproven(graph, target) == set()
    monkeypatch.setattr(rows, "extent_of", lambda some: expr.add(extent_of(some), 1))
    assert unproven(graph, target) == {"input 0", "output 1"}
    assert refused(compiled(graph, target), array) == ("kernel_0", "loads input 0", 5 * 7 * 4)


def with_one_more(body: KernelBody, stage: Stage) -> tuple[Loop, ...]:
    """`inner_loops` with the last loop one step too long."""
    *others, last = inner_loops(body, stage)
    return (*others, replace(last, extent=expr.add(last.extent, 1)))


def test_a_step_too_many_inside_of_a_row_is_refused(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    arrays = draw(5, 7), draw(5, 7)
    graph = graph_of(lambda x, y: x + y, *arrays)
    checked.run(compiled(graph, target), *arrays)
    assert unproven(graph, target) == set()
    monkeypatch.setattr(nests, "inner_loops", with_one_more)
    assert unproven(graph, target) == {"input 0", "input 1", "output 2"}
    kernel, what, offset = refused(compiled(graph, target), *arrays)
    assert kernel == "kernel_0"
    assert what in ("loads input 0", "loads input 1")
    assert offset == 5 * 7 * 4


def with_ends_included(module: Any) -> SimpleNamespace:
    """The dialect `arith` with `<=` in place of unsigned `<`."""
    predicates = SimpleNamespace(ult=module.CmpIPredicate.ule, sge=module.CmpIPredicate.sge)
    return SimpleNamespace(**{**vars(module), "CmpIPredicate": predicates})


def test_an_index_too_large_for_a_scatter_is_refused(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    indices, updates = np.array([[0, 2], [1, 6]], np.int64), draw(2, 2)
    graph = graph_of(lambda x, y: scattered(x, y, 1, (2, 6)), indices, updates)
    checked.run(compiled(graph, target), indices, updates)
    assert unproven(graph, target) == set()
    monkeypatch.setattr(scatter_row, "arith", with_ends_included(arith))
    assert unproven(graph, target) == {"output 2"}
    assert refused(compiled(graph, target), indices, updates) == ("kernel_0", "stores output 2", 2 * 6 * 4)


def one_more(extent: int) -> Callable[[Sequence[Loop]], Dim]:
    """`extent_of`, one too large for loops of this extent."""

    def wrong(some: Sequence[Loop]) -> Dim:
        found = extent_of(some)
        return expr.add(found, 1) if found == extent else found

    return wrong


@pytest.mark.parametrize(
    ("extent", "what", "size"),
    [(37, "stores output 2", 4 * 37 * 47), (47, "loads input 1", 4 * 65 * 47), (65, "loads input 0", 4 * 37 * 65)],
    ids=["rows", "columns", "depth"],
)
def test_one_too_many_of_a_contraction_is_refused(
    monkeypatch: pytest.MonkeyPatch, target: str, extent: int, what: str, size: int
) -> None:
    arrays = draw(37, 65), draw(65, 47)
    graph = graph_of(lambda x, y: x @ y, *arrays)
    checked.run(compiled(graph, target), *arrays)
    assert unproven(graph, target) == set()
    monkeypatch.setattr(contraction, "extent_of", one_more(extent))
    monkeypatch.setattr(block_product, "extent_of", one_more(extent))
    assert f"{what.split()[1]} {what.split()[2]}" in unproven(graph, target)
    kernel, told, offset = refused(compiled(graph, target), *arrays)
    assert (kernel, told) == ("kernel_0", what)
    assert offset >= size


def shortened(compilation: Compilation, number: int) -> Compilation:
    """The program with the last element of a buffer missing."""
    buffers = list(compilation.program.buffers)
    (elements,), itemsize = buffers[number].shape, buffers[number].dtype.itemsize
    assert isinstance(elements, int)
    update = {"shape": (elements - 1,), "size_bytes": (elements - 1) * itemsize}
    buffers[number] = buffers[number].model_copy(update=update)
    return replace(compilation, program=compilation.program.model_copy(update={"buffers": tuple(buffers)}))


def scratch_of(compilation: Compilation) -> list[int]:
    return [buffer.id for buffer in compilation.program.buffers if buffer.role == "scratch"]


def test_scratch_of_the_loops_that_lacks_an_element_is_refused(target: str) -> None:
    array = draw(3, 1000)
    compilation = compiled(graph_of(lambda x: softmax(x), array), target)
    checked.run(compilation, array)
    assert scratch_of(compilation)
    for number in scratch_of(compilation):
        size = compilation.program.buffers[number].size_bytes
        assert refused(shortened(compilation, number), array) == ("kernel_0", f"stores scratch {number}", size - 4)


@pytest.mark.parametrize("transposed", [False, True], ids=["as it is", "transposed"])
def test_scratch_of_a_contraction_that_lacks_an_element_is_refused(target: str, transposed: bool) -> None:
    arrays = draw(672, 256), draw(256, 256)
    graph = graph_of(lambda x, y: x @ (y.transpose(0, 1) if transposed else y), *arrays)
    compilation = compiled(graph, target)
    checked.run(compilation, *arrays)
    # With masked vector stores, the result has no separate block.
    assert len(scratch_of(compilation)) == 4 + transposed + target.endswith("v2")
    for number in scratch_of(compilation):
        buffer = compilation.program.buffers[number]
        kernel, what, offset = refused(shortened(compilation, number), *arrays)
        assert (kernel, what) == ("kernel_0", f"stores scratch {number}")
        assert offset == buffer.size_bytes - buffer.dtype.itemsize


def unmasked(module: Any) -> SimpleNamespace:
    """The dialect `vector` with masks that enable every lane."""

    def create(kind: ir.VectorType, sizes: Sequence[ir.Value]) -> Any:
        return module.CreateMaskOp(kind, [arith.constant(ir.IndexType.get(), kind.shape[0]) for _ in sizes])

    return SimpleNamespace(**{**vars(module), "CreateMaskOp": create})


@pytest.mark.parametrize("transposed", [False, True], ids=["by vectors", "by gathers"])
def test_packing_without_a_mask_for_the_tail_is_refused(
    monkeypatch: pytest.MonkeyPatch, target: str, transposed: bool
) -> None:
    arrays = draw(33, 65), draw(*((47, 65) if transposed else (65, 47)))
    graph = graph_of(lambda x, y: x @ (y.transpose(0, 1) if transposed else y), *arrays)
    checked.run(compiled(graph, target), *arrays)
    assert unproven(graph, target) == set()
    monkeypatch.setattr(pack_function, "vector", unmasked(vector))
    assert "input 1" in unproven(graph, target)
    kernel, what, _ = refused(compiled(graph, target), *arrays)
    assert (kernel, what) == ("kernel_0", "loads input 1")


def test_a_store_into_an_input_is_refused(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    array = draw(40)
    graph = graph_of(lambda x: x * 2.0, array)
    checked.run(compiled(graph, target), array)
    right = realise.operand_pointers
    monkeypatch.setattr(realise, "operand_pointers", lambda *parts: right(*parts)[::-1])
    kernel, what, offset = refused(compiled(graph, target), array)
    assert (kernel, what) == ("kernel_0", "stores input 0")
    assert 0 <= offset < 40 * 4


def test_a_block_that_is_added_to_what_was_there_is_refused(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    arrays = draw(33, 65), draw(65, 47)
    graph = graph_of(lambda x, y: x @ y, *arrays)
    flag = ir.IntegerType.get_signless
    monkeypatch.setattr(block_product.BlockProduct, "starts", lambda *_: arith.constant(flag(1), 0))
    with pytest.raises(CheckedFault, match=r"1551 of 1551 elements depend on .* memory that nobody has written"):
        checked.run(compiled(graph, target), *arrays)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return softmax(q @ k.transpose(0, 1)) @ v


@pytest.mark.parametrize(
    ("extent", "what", "size"),
    [(33, "stores output 3", 4 * 33 * 20), (24, "loads input 0", 4 * 33 * 24)],
    ids=["rows", "depth"],
)
def test_one_too_many_of_a_chain_is_refused(
    monkeypatch: pytest.MonkeyPatch, target: str, extent: int, what: str, size: int
) -> None:
    arrays = draw(33, 24), draw(47, 24), draw(47, 20)
    graph = graph_of(attention, *arrays)
    checked.run(compiled(graph, target), *arrays)
    assert unproven(graph, target) == set()
    monkeypatch.setattr(chain, "extent_of", one_more(extent))
    monkeypatch.setattr(block_product, "extent_of", one_more(extent))
    kernel, told, offset = refused(compiled(graph, target), *arrays)
    assert (kernel, told) == ("kernel_0", what)
    assert offset >= size


def test_a_column_of_a_chain_that_no_stage_has_computed_is_refused(
    monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    arrays = draw(33, 24), draw(47, 24), draw(47, 20)
    monkeypatch.setattr(block_product, "extent_of", one_more(47))
    with pytest.raises(CheckedFault, match=r"660 of 660 elements depend on .* memory that nobody has written"):
        checked.run(compiled(graph_of(attention, *arrays), target), *arrays)


def test_scratch_of_a_chain_that_lacks_an_element_is_refused(target: str) -> None:
    arrays = draw(112, 256), draw(512, 256), draw(512, 256)
    compilation = compiled(graph_of(attention, *arrays), target)
    checked.run(compilation, *arrays)
    assert len(scratch_of(compilation)) >= 8
    told = set[str]()
    for number in scratch_of(compilation):
        kernel, what, _ = refused(shortened(compilation, number), *arrays)
        assert kernel == "kernel_0"
        told.add(what)
    assert told == {f"stores scratch {number}" for number in scratch_of(compilation)}
