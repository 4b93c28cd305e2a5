"""The sizes of a call are those of its plan, at every binding of the symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import pytest

from tensorkiln.build import Builder, Tensor, cast, softmax
from tensorkiln.dtypes import DType
from tensorkiln.errors import TensorkilnError
from tensorkiln.expr import Dim, ExprError, floordiv, maximum, mul, symbol
from tensorkiln.infer import Constraint
from tensorkiln.runtime import host_launch
from tensorkiln.runtime.call_sizes import call_sizes
from tensorkiln.runtime.host_launch import HostLaunch
from tensorkiln.runtime.loaded import LoadedProgram, load_program
from tensorkiln.schedule import ItemAnalysis
from tests.compiled import compiled
from tests.runtime.empty_graphs import CASES, EmptyCase
from tests.runtime.kernels import ADD, DOUBLE, INCREMENT, triangle_with_scratch
from tests.runtime.planned import is_short, numbers_of_plan, numbers_of_sizes, planned
from tests.runtime.sketch import Sketch

N, M = symbol("n"), symbol("m")


def loaded_graph(write: Callable[[Builder], tuple[Tensor, ...]]) -> LoadedProgram:
    b = Builder("sizes")
    b.output(*write(b))
    compilation = compiled(b.graph())
    return load_program(compilation.program, compilation.artifacts.__getitem__)


def loaded_sketch(sketch: Sketch) -> LoadedProgram:
    return load_program(sketch.compiled(), sketch.artifacts.__getitem__)


def compare(loaded: LoadedProgram, bindings: Sequence[Mapping[str, int]], threads: int = 1) -> list[bool]:
    """Whether machine code may do the call, for each binding; AssertionError where the sizes are not the plan's."""
    sizes = call_sizes(loaded.outlines.whole, loaded.kernels, loaded.constants, {}, threads)
    short: list[bool] = []
    for symbols in bindings:
        found = None if sizes is None else numbers_of_sizes(sizes, symbols)
        short.append(found is not None)
        try:
            plan = planned(loaded, threads, symbols)
        except (TensorkilnError, ExprError):
            assert found is None, symbols
            continue
        assert found == (numbers_of_plan(plan) if is_short(plan) else None), symbols
    return short


def at(*sizes: int) -> list[dict[str, int]]:
    return [{"n": n} for n in sizes]


def several(b: Builder) -> tuple[Tensor, ...]:
    n = b.symbol("n", 0, 1000)
    x, y = b.input("float32", (n, 6)), b.input("int32", ())
    return softmax(x), (x @ x.transpose()).sum(), y * 2, cast(x, "bfloat16")


def layers(b: Builder) -> tuple[Tensor, ...]:
    n, m = b.symbol("n", 1, 90000), b.symbol("m", 1, 40)
    x, y = b.input("float32", (n, 24)), b.input("float32", (n, m))
    kept = x
    for width in (16, 40, 24):
        weights = b.input("float32", (kept.shape[1], width))
        kept = softmax(kept @ weights)
    return kept + x, (y + 1).sum(1), kept.transpose() @ y


def test_a_graph_with_several_results_is_as_planned() -> None:
    short = compare(loaded_graph(several), at(0, 1, 2, 7, 63, 64, 65, 100, 1000, 1001, -1))
    assert short == [True] * 8 + [False] * 3


def test_layers_with_temporaries_are_as_planned_at_every_size() -> None:
    loaded = loaded_graph(layers)
    bindings = [{"n": n, "m": m} for n, m in product((1, 2, 3, 17, 100, 682, 1366, 90000), (1, 7, 40))]
    short = compare(loaded, bindings)
    assert 0 < sum(short) < len(short)
    assert 0 < sum(compare(loaded, bindings, threads=4)) <= sum(short)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_windows_without_elements_are_as_planned(case: EmptyCase) -> None:
    compilation = compiled(case.graph())
    loaded = load_program(compilation.program, compilation.artifacts.__getitem__)
    compare(loaded, at(*range(case.most + 1)))


def chain(sizes: Sequence[Dim], lifetimes: Sequence[tuple[int, int]]) -> Sketch:
    """Kernels that read the temporaries before them."""
    sketch = Sketch(symbols={"n": (0, 99), "m": (0, 99)})
    buffers = [sketch.buffer([N], "input")]
    buffers += [sketch.buffer([size], lifetime=lifetime) for size, lifetime in zip(sizes, lifetimes, strict=True)]
    out = sketch.buffer([N], "output")
    for step in range(max(last for _, last in lifetimes) + 1):
        alive = [number for number, (first, last) in zip(buffers[1:], lifetimes, strict=True) if first <= step <= last]
        sketch.elementwise(ADD, "add", [alive[0], alive[-1], out])
    return sketch


def test_temporaries_whose_order_of_size_depends_on_the_call_are_as_planned() -> None:
    sizes: list[Dim] = [N, M, mul(2, N), 40, maximum(N, M), floordiv(mul(N, M), 3)]
    lifetimes = [(0, 2), (0, 1), (1, 3), (2, 4), (0, 4), (1, 2)]
    bindings = [{"n": n, "m": m} for n, m in product((0, 1, 5, 16, 17, 40, 99), repeat=2)]
    assert all(compare(loaded_sketch(chain(sizes, lifetimes)), bindings))


def test_scratch_lies_where_nothing_else_does() -> None:
    sketch = Sketch(symbols={"n": (1, 99)})
    for count in (5, 9):
        out = sketch.buffer([N], "output", DType.INT64)
        scratch = sketch.buffer([count], "scratch", DType.INT64)
        sketch.launch(triangle_with_scratch(count), "triangle", [out, scratch], outs=(0, 1), groups=N)
    sketch.buffer([N])
    assert all(compare(loaded_sketch(sketch), at(1, 2, 50, 99)))


def test_windows_of_one_storage_are_as_planned() -> None:
    for offset in (0, 8, 4 * N, 4 * N - 16):
        sketch = Sketch(symbols={"n": (0, 99)})
        x = sketch.buffer([100], "input", alias_group=0)
        part = sketch.buffer([N], alias_group=0, offset=offset)
        out = sketch.buffer([maximum(mul(2, N), 20)], "output", alias_group=1)
        window = sketch.buffer([N], alias_group=1, offset=mul(4, N))
        sketch.elementwise(ADD, "add", [x, part, window])
        sketch.elementwise(DOUBLE, "double_it", [window, out])
        assert len(set(compare(loaded_sketch(sketch), at(0, 1, 3, 4, 10, 49, 50, 51, 75, 99)))) in (1, 2)


def test_a_result_that_is_the_whole_of_its_storage_at_some_sizes_only_is_left_to_plans_at_others() -> None:
    sketch = Sketch(symbols={"n": (1, 99)})
    out = sketch.buffer([N], "output", alias_group=0)
    other = sketch.buffer([50], alias_group=0)
    sketch.elementwise(DOUBLE, "double_it", [sketch.buffer([N], "input"), other])
    sketch.elementwise(INCREMENT, "increment", [other, out])
    assert compare(loaded_sketch(sketch), at(49, 50, 51)) == [False, True, True]


def test_constants_are_where_they_were_loaded() -> None:
    sketch = Sketch(symbols={"n": (0, 4)})
    constant = sketch.buffer([4], "constant", content=bytes(16), alias_group=3)
    window = sketch.buffer([N], alias_group=3, offset=16 - 4 * N)
    sketch.elementwise(ADD, "add", [constant, window, sketch.buffer([N], "output")])
    assert all(compare(loaded_sketch(sketch), at(0, 1, 4)))


def test_conditions_of_a_call_are_looked_at() -> None:
    sketch = Sketch(symbols={"n": (0, 99), "m": (0, 99)})
    buffers = [sketch.buffer([N], "input"), sketch.buffer([M], "input"), sketch.buffer([N], "output")]
    sketch.elementwise(ADD, "add", buffers)
    sketch.constraints = [
        Constraint("eq", N, mul(2, M), "/nodes/0", "halves"),
        Constraint("ge", N, 3, "/nodes/1", "inside"),
    ]
    bindings = [{"n": n, "m": m} for n, m in ((4, 2), (4, 3), (2, 1), (99, 49), (98, 49))]
    assert compare(loaded_sketch(sketch), bindings) == [True, False, False, False, True]


@pytest.mark.parametrize(
    ("size", "fits"),
    [(N - 5, [False, True, True]), (floordiv(40, N), [False, True, True]), (mul(N, 1 << 58), [True, False, False])],
    ids=str,
)
def test_a_size_without_a_value_is_left_to_plans(size: Dim, fits: list[bool]) -> None:
    sketch = Sketch(symbols={"n": (0, 9)})
    buffers = [sketch.buffer([4], "input"), sketch.buffer([4], "output")]
    sketch.launch(DOUBLE, "double_it", buffers, var_names=("n",))
    sketch.buffer([size])
    assert compare(loaded_sketch(sketch), at(0, 5, 9)) == fits


def test_a_grid_without_threads_is_not_launched() -> None:
    sketch = Sketch(symbols={"n": (0, 9)})
    buffers = [sketch.buffer([N], "input"), sketch.buffer([N], "output")]
    sketch.launch(DOUBLE, "double_it", buffers, var_names=("n",), groups=maximum(N, 1), threads=N)
    assert all(compare(loaded_sketch(sketch), at(0, 1, 9)))


def test_a_grid_that_is_empty_without_being_left_out_is_left_to_plans() -> None:
    sketch = Sketch(symbols={"n": (0, 9)})
    buffers = [sketch.buffer([N], "input"), sketch.buffer([N], "output")]
    sketch.launch(DOUBLE, "double_it", buffers, var_names=("n",), groups=N)
    assert compare(loaded_sketch(sketch), at(0, 1, 9)) == [False, True, True]


@pytest.mark.parametrize("est_ns", [0, 10_000_000])
def test_work_for_two_threads_is_left_to_plans(est_ns: int) -> None:
    sketch = Sketch(symbols={"n": (1, 1 << 24)})
    sketch.elementwise(
        ADD, "add", [sketch.buffer([N], "input"), sketch.buffer([N], "input"), sketch.buffer([], "output")]
    )
    sketch.analysis = [ItemAnalysis(item_id=0, flops=N, bytes_read=8 * N, bytes_written=4 * N, est_ns=est_ns)]
    bindings = at(1, 1 << 10, 1_700_000, 2_600_000, 1 << 22, 1 << 24)
    assert all(compare(loaded_sketch(sketch), bindings))
    found = compare(loaded_sketch(sketch), bindings, threads=2)
    assert found[0] is True
    assert found[-1] is False


@pytest.mark.parametrize(("est_us", "chunk"), [(41, 8), (79, 8), (320, 2), (10_000, 1)])
def test_a_thread_takes_a_quarter_of_its_groups_or_10_microseconds_of_work_at_a_time(est_us: int, chunk: int) -> None:
    sketch = Sketch(symbols={"n": (1, 1 << 10)})
    sketch.launch(DOUBLE, "double_it", [sketch.buffer([N], "input"), sketch.buffer([N], "output")], groups=64)
    sketch.analysis = [ItemAnalysis(item_id=0, est_ns=1000 * est_us)]
    (step,) = planned(loaded_sketch(sketch), 2, {"n": 64}).steps
    assert isinstance(step, HostLaunch)
    assert (step.edges, step.chunk) == ((0, 32, 64), chunk)


def test_the_least_work_of_a_thread_has_one_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = loaded_graph(layers)
    bindings = [{"n": n, "m": 7} for n in (300, 600)]
    assert all(compare(loaded, bindings, threads=2))
    monkeypatch.setattr(host_launch, "NS_PER_WORKER", 1)
    assert not any(compare(loaded, bindings, threads=2))


def test_a_kernel_that_states_other_bounds_of_a_symbol_is_left_to_plans_outside_them() -> None:
    sketch = Sketch(symbols={"n": (1, 9)})
    sketch.elementwise(DOUBLE, "double_it", [sketch.buffer([N], "input"), sketch.buffer([N], "output")])
    (kernel,) = sketch.kernels
    (variable,) = kernel.vars
    sketch.kernels = [kernel.model_copy(update={"vars": (variable.model_copy(update={"min": 3, "max": 5}),)})]
    assert compare(loaded_sketch(sketch), at(2, 3, 5, 6)) == [False, True, True, False]
