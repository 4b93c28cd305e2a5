"""Windows and padded maps in strips of vectors: masks instead of branches, and what a window reads in registers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from passes.attributes import encode
from passes.codegen.object_code import optimised_ir
from passes.cpu.realise import realise_kernels
from passes.schedule.attach import SCHEDULE, kernel_functions, schedule_of
from tensorkiln.build import (
    Builder,
    Tensor,
    avg_pool2d,
    cat,
    conv2d,
    exp,
    log,
    max_pool2d,
    maximum,
    minimum,
    pad,
    power,
    relu,
    shrink,
    sin,
    sqrt,
    where,
)
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tensorkiln.schedule import KernelItem, Vectorize
from tensorkiln.target import Target
from tests import checked
from tests.bounds import accesses
from tests.compiled import compiled, runs_here, shared
from tests.filecheck import check_ir
from tests.passes.modules import after, machine, output, realised

Array = np.ndarray[Any, Any]
Write = Callable[..., Tensor]
V3, V4 = "cpu:x86-64-v3", "cpu:x86-64-v4"
TARGETS = [target for target in ("cpu:x86-64-v2", V3, V4) if runs_here(target)]


def graph_of(write: Write, *shapes: tuple[Dim | str, ...], dtype: str = "float32") -> Graph:
    b = Builder("strips")
    if any("n" in shape for shape in shapes):
        b.symbol("n", 1, 64)
    return output(b, write(*(b.input(dtype, shape) for shape in shapes)))


def padded(x: Tensor) -> Tensor:
    return pad(x * 2, [(0, 0), (1, 2), (3, 1)])


def mirrored(x: Tensor) -> Tensor:
    """Read backwards behind its edge."""
    return pad(x.flip([2]) + 1, [(0, 0), (0, 0), (2, 2)])


def depthwise(x: Tensor, w: Tensor) -> Tensor:
    return relu(conv2d(x, w, padding=1, groups=5))


def depthwise_of_many_points(x: Tensor, w: Tensor) -> Tensor:
    return conv2d(x, w, padding=2, groups=5)


def wide_windows(x: Tensor) -> Tensor:
    return avg_pool2d(x, 5, 1, 2)


WRITES: dict[str, tuple[Write, tuple[tuple[Dim | str, ...], ...]]] = {
    "padded": (padded, ((3, 5, 21),)),
    "padded, one vector": (padded, ((3, 5, 12),)),
    "padded, many vectors": (padded, ((2, 3, 157),)),
    "padded, with a factor of a channel": (lambda x, s: padded(x * s), ((3, 5, 21), (3, 1, 1))),
    "padded, with a factor of a row": (lambda x, s: padded(x * s), ((3, 25, 51), (25, 1))),
    "depthwise, padded": (
        lambda x, s, w: conv2d(relu(x * s + 1), w, padding=1, groups=9),
        ((1, 9, 14, 13), (9, 1, 1), (9, 1, 3, 3)),
    ),
    "depthwise, every second": (
        lambda x, s, w: conv2d(relu(x * s + 1), w, stride=2, padding=1, groups=9),
        ((1, 9, 23, 27), (9, 1, 1), (9, 1, 3, 3)),
    ),
    "mirrored": (mirrored, ((2, 4, 17),)),
    "maximum": (lambda x: max_pool2d(x, 3, 1, 1), ((1, 5, 9, 23),)),
    "maximum, every second": (lambda x: max_pool2d(x, 3, 2, 1), ((1, 5, 19, 27),)),
    "maximum of apart": (lambda x: max_pool2d(x, 2, 1, 1, 2), ((1, 3, 11, 18),)),
    "average": (wide_windows, ((1, 2, 9, 16),)),
    "depthwise": (depthwise, ((1, 5, 8, 20), (5, 1, 3, 3))),
    "depthwise, of many points": (depthwise_of_many_points, ((1, 5, 8, 20), (5, 1, 5, 5))),
    "inside": (lambda x: max_pool2d(x, 3), ((1, 4, 16, 40),)),
    "cropped": (lambda x: pad(shrink(x, [(0, 3), (2, 20)]), [(1, 1), (4, 4)]), ((3, 30),)),
    "of any height": (lambda x: max_pool2d(x, 3, 1, 1), ((1, 2, "n", 10),)),
    "of any width": (lambda x: max_pool2d(x, 3, 1, 1), ((1, 2, 7, "n"),)),
    "padded, of any width": (padded, ((2, 3, "n"),)),
}


def draw(graph: Graph, n: int) -> list[Array]:
    rng = np.random.default_rng(n)
    found: list[Array] = []
    for var in graph.input_vars:
        kind = graph.types[var]
        shape = tuple(n if not isinstance(extent, int) else extent for extent in kind.shape)
        values = rng.integers(-50, 50, shape)
        found.append(
            values.astype(kind.dtype.numpy) if not kind.dtype.is_float else (values / 4).astype(kind.dtype.numpy)
        )
    return found


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", WRITES)
def test_every_point_is_right_in_guarded_memory(name: str, target: str) -> None:
    write, shapes = WRITES[name]
    graph = graph_of(write, *shapes)
    made = compiled(graph, target)
    for n in (1, 5, 16, 37) if any("n" in shape for shape in shapes) else (0,):
        arrays, symbols = draw(graph, n), {"n": n} if n else {}
        (found,) = checked.run(made, *arrays, **symbols)
        np.testing.assert_allclose(found, evaluate(graph, *arrays, **symbols)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "int32", "int8", "uint16", "int64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["padded", "maximum", "maximum, every second"])
def test_every_dtype_is_right(name: str, dtype: str) -> None:
    write, shapes = WRITES[name]
    graph = graph_of(write, *shapes, dtype=dtype)
    arrays = draw(graph, 0)
    np.testing.assert_array_equal(checked.run(compiled(graph), *arrays)[0], evaluate(graph, *arrays)[0])


def mixed(x: Tensor, y: Tensor) -> Tensor:
    return max_pool2d(x.cast("float64") + y.cast("float64"), 3, 2, 1)


def transposed(x: Tensor, y: Tensor) -> Tensor:
    """Columns in vectors of 32-bit elements, and rows of padding."""
    return x.permute([1, 0]).cast("float64") + pad(y, [(2, 1), (3, 2)]).cast("float64")


WIDE: dict[str, tuple[Write, tuple[tuple[str, tuple[int, ...]], ...]]] = {
    "windows, one vector": (lambda x: max_pool2d(x, 3, 2, 1), (("int64", (1, 2, 13, 9)),)),
    "windows, some vectors": (lambda x: max_pool2d(x, 3, 1, 1), (("float64", (1, 2, 9, 21)),)),
    "windows of two dtypes": (mixed, (("float32", (1, 2, 13, 11)), ("int64", (1, 2, 13, 11)))),
    "padded": (padded, (("float64", (3, 5, 7)),)),
    "transposed": (transposed, (("float32", (21, 11)), ("float64", (8, 16)))),
}
"""Kernels with 64-bit elements under masks, and the dtypes and shapes of their inputs."""
MASKED = re.compile(r"call [^@]*@llvm\.masked\.[a-z]+\.v(\d+)[if](\d+)")


def wide(name: str) -> Graph:
    write, inputs = WIDE[name]
    b = Builder("wide")
    return output(b, write(*(b.input(dtype, shape) for dtype, shape in inputs)))


@pytest.mark.parametrize("target", [target for target in TARGETS if target != "cpu:x86-64-v2"])
@pytest.mark.parametrize("name", WIDE)
def test_64_bit_elements_are_read_inside_their_memory(name: str, target: str) -> None:
    graph = wide(name)
    arrays = draw(graph, 0)
    made = shared(graph, target, texts=["translate"])
    np.testing.assert_array_equal(checked.run(made, *arrays)[0], evaluate(graph, *arrays)[0])


@pytest.mark.parametrize("dtype", ["float64", "int64"])
@pytest.mark.parametrize("name", ["padded, of any width", "of any width"])
def test_64_bit_rows_of_any_width_are_whole(name: str, dtype: str) -> None:
    write, shapes = WRITES[name]
    graph = graph_of(write, *shapes, dtype=dtype)
    made = compiled(graph)
    for extent in range(1, 12):
        arrays = draw(graph, extent)
        np.testing.assert_array_equal(checked.run(made, *arrays, n=extent)[0], evaluate(graph, *arrays, n=extent)[0])


@pytest.mark.parametrize(("target", "register"), [(V3, 256), (V4, 512)])
@pytest.mark.parametrize("name", WIDE)
def test_masked_accesses_take_at_most_a_register(name: str, target: str, register: int) -> None:
    text = shared(wide(name), target, texts=["translate"]).dumps["translate"]
    bits = [int(lanes) * int(size) for lanes, size in MASKED.findall(optimised_ir(text, Target.parse(target)))]
    assert bits
    assert max(bits) <= register


NUMBERS = (
    *("float16", "bfloat16", "float32", "float64"),
    *("int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"),
)


@pytest.mark.parametrize("source", NUMBERS)
@pytest.mark.parametrize("target", NUMBERS)
def test_a_conversion_is_that_of_every_element(source: str, target: str) -> None:
    graph = graph_of(lambda x: pad(x.cast(target), [(0, 0), (2, 1)]), (3, 21), dtype=source)
    info = ml_dtypes.finfo(source) if DType(source).is_float else np.iinfo(source)
    array = np.resize(np.array([info.min, info.max, 0, 1, 100.75, 3], info.dtype), (3, 21))
    np.testing.assert_array_equal(checked.run(compiled(graph), array)[0], evaluate(graph, array)[0])


UNARY: dict[str, Write] = {
    "negated": lambda x: -x,
    "root": sqrt,
    "reciprocal": lambda x: 1.0 / x,
    "greater": lambda x: where(x > 1.0, x, -x),
    "smallest": lambda x: minimum(maximum(x, -2.0), 2.0),
    "power": lambda x: power(abs(x), x),
    "sine": sin,
    "logarithm": log,
    "exponential": exp,
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", UNARY)
def test_an_operation_is_that_of_every_element(name: str, dtype: str) -> None:
    graph = graph_of(lambda x: pad(UNARY[name](x), [(0, 0), (2, 1)]), (2, 21), dtype=dtype)
    values = [0.0, -0.0, 1.0, -1.5, 3.25, np.inf, -np.inf, np.nan, 1e-30]
    array = np.resize(np.array(values, DType(dtype).numpy), (2, 21))
    with np.errstate(all="ignore"):
        expected = evaluate(graph, array)[0]
    found = checked.run(compiled(graph), array)[0]
    tolerance = 1e-5 if DType(dtype).itemsize > 2 else 1e-2
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=tolerance)


@pytest.mark.parametrize("target", [V3, V4])
@pytest.mark.parametrize("name", WRITES)
def test_accesses_of_strips_are_proven(name: str, target: str) -> None:
    write, shapes = WRITES[name]
    wrong = [access for access in accesses(realised(graph_of(write, *shapes), target)) if not access.is_proven]
    assert wrong == []


def vectors_of(graph: Graph) -> list[tuple[Dim, bool]]:
    """The extent of each loop in vectors of the only kernel, and whether its vectors are masked."""
    (item,) = compiled(graph, V3).program.schedule.items
    assert isinstance(item.operation, KernelItem)
    axes = item.operation.iter.axes
    return [(axes[hint.axis].extent, hint.masked) for hint in item.operation.hints if isinstance(hint, Vectorize)]


def test_the_record_names_the_loop_in_vectors() -> None:
    assert vectors_of(graph_of(lambda x: max_pool2d(x, 3, 1, 1), (1, 5, 9, 23))) == [(23, True)]
    assert vectors_of(graph_of(padded, (3, 5, 21))) == [(25, False), (25, True), (25, False)]
    assert vectors_of(graph_of(lambda x: x.sum(0), (300, 21))) == [(21, False)]
    assert vectors_of(graph_of(lambda x, y: cat([x, y * 2], 1), (40, 9), (40, 30))) == [(9, False), (30, False)]


def test_the_emitter_reads_strips_from_the_record() -> None:
    module = after("schedule", graph_of(padded, (3, 5, 21)), V4)
    (kernel,) = kernel_functions(module).values()
    strategy, item = schedule_of(kernel)
    assert strategy == "loops"
    hints = tuple(hint.model_copy(update={"masked": False}) for hint in item.hints)
    with module.context:
        kernel.attributes[SCHEDULE] = encode(item.model_copy(update={"hints": hints}).model_dump(mode="json"))
    text = str(realise_kernels(module, machine(V4)))
    assert "linalg.generic" in text
    assert "vector.maskedload" not in text


def test_a_padded_map_loads_and_stores_by_vectors() -> None:
    check_ir(
        after("realise", graph_of(padded, (3, 5, 21)), V4),
        """
        // CHECK-LABEL: func.func @kernel_0_body
        // CHECK: linalg.generic
        // CHECK-NOT: scf.if
        // CHECK: vector.maskedload {{.*}} vector<16xf32>
        // CHECK: vector.store {{.*}} vector<16xf32>
        // CHECK-NOT: vector.maskedstore
        // CHECK: vector.maskedload {{.*}} vector<16xf32>
        // CHECK: vector.store {{.*}} vector<16xf32>
        // CHECK-NOT: vector.maskedstore
        // CHECK: linalg.generic
        """,
    )


def test_many_vectors_are_a_loop() -> None:
    check_ir(
        after("realise", graph_of(padded, (3, 5, 200)), V4),
        """
        // CHECK: scf.for {{.*}} step %c16
        // CHECK: vector.maskedload {{.*}} vector<16xf32>
        // CHECK: vector.store {{.*}} vector<16xf32>
        """,
    )


def test_less_than_a_vector_is_masked() -> None:
    check_ir(
        after("realise", graph_of(padded, (3, 5, 8)), V4),
        """
        // CHECK: vector.create_mask
        // CHECK: vector.maskedload {{.*}} vector<16xf32>
        // CHECK: vector.maskedstore {{.*}} vector<16xf32>
        """,
    )


def test_rows_of_padding_are_stored_apart() -> None:
    image = graph_of(lambda x, s: pad(x * s, [(0, 0), (1, 2), (3, 1)]), (3, 40, 52), (3, 1, 1))
    (item,) = compiled(image, V3).program.schedule.items
    assert isinstance(item.operation, KernelItem)
    assert [axis.extent for axis in item.operation.iter.axes] == [3, 1, 56, 40, 56, 2, 56]


def test_a_window_is_combined_before_anything_is_stored() -> None:
    check_ir(
        after("realise", graph_of(lambda x: max_pool2d(x, 3), (1, 4, 16, 48)), V4),
        """
        // CHECK-LABEL: func.func @kernel_0_body
        // CHECK-COUNT-9: arith.maxnumf {{.*}} vector<16xf32>
        // CHECK: vector.store
        // CHECK-NOT: linalg.generic
        """,
    )


def test_a_window_of_more_points_is_a_loop() -> None:
    check_ir(
        after("realise", graph_of(wide_windows, (1, 2, 9, 16)), V4),
        """
        // CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>)
        // CHECK-COUNT-5: arith.addf {{.*}} vector<16xf32>
        """,
    )


def test_products_of_a_window_are_added_by_multiply_adds() -> None:
    check_ir(
        after("realise", graph_of(depthwise, (1, 5, 8, 32), (5, 1, 3, 3)), V4),
        """
        // CHECK-COUNT-9: arith.addf {{.*}} fastmath<contract> : vector<16xf32>
        """,
    )


def test_each_line_of_a_larger_window_of_products_has_a_sum_of_its_own() -> None:
    check_ir(
        after("realise", graph_of(depthwise_of_many_points, (1, 5, 12, 32), (5, 1, 5, 5)), V4),
        """
        // CHECK: scf.for {{.*}} iter_args(%[[TOTAL:.*]] = {{.*}}) -> (vector<16xf32>)
        // CHECK-COUNT-5: %[[LINE:.*]] = arith.addf {{.*}} fastmath<contract> : vector<16xf32>
        // CHECK: %[[NEXT:.*]] = arith.addf %[[TOTAL]], %[[LINE]]
        // CHECK: scf.yield %[[NEXT]] : vector<16xf32>
        """,
    )


@pytest.mark.parametrize(
    ("graph", "target"),
    [
        (graph_of(padded, (3, 5, 21)), "cpu:x86-64-v2"),
        (graph_of(padded, (3, 5, 21)), "cpu:aarch64"),
        (graph_of(lambda x: x * 2 + 1, (3, 5, 21)), V4),
        (graph_of(lambda x: pad(x.permute(1, 0) * 2, [(0, 0), (1, 1)]), (8, (1 << 24) + 1)), V4),
        (graph_of(lambda x: x.sum(0), (300, 21)), V4),
    ],
    ids=[
        "without masks",
        "of another architecture",
        "a plain map",
        "elements far apart",
        "a long reduction",
    ],
)
def test_the_rest_is_left_to_linalg(graph: Graph, target: str) -> None:
    text = str(after("realise", graph, target))
    assert "linalg.generic" in text
    assert "maskedload" not in text
