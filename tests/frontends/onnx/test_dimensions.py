"""Arithmetic between `Shape` and `Reshape`, with symbols in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import parser

from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.frontends.onnx import load
from tensorkiln.reference import evaluate
from tests import checked

SYMBOLS = {"n": (2, 8)}


def model(nodes: str) -> Any:
    return parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 20]> g (float[n, 6] x) => (float[] y) {{ {nodes} }}'
    )


def shape_of(nodes: str, n: int = 4) -> tuple[int, ...]:
    imported = load(model(nodes), symbols=SYMBOLS)
    (y,) = evaluate(imported.graph, *imported.arguments(x=np.ones((n, 6), np.float32)), n=n)
    return y.shape


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        # What torch's exporters write for expand(-1, 6): dims of -1 are those of the tensor.
        (
            (
                "s = Shape(x) w = Constant<value_ints = [-1, 6]>() m = Constant<value_ints = [-1]>() "
                "is = Equal(w, m) t = Where(is, s, w) y = Expand(x, t)"
            ),
            (4, 6),
        ),
        (
            (
                "s = Shape(x) two = Constant<value_ints = [2]>() d = Mul(s, two) a = Constant<value_ints = [0]>() "
                "t = ReduceProd<keepdims = 1>(s, a) y = Reshape(x, t)"
            ),
            (24,),
        ),
        (
            (
                "s = Shape(x) six = Constant<value_ints = [6]>() m = Min(s, six) z = Constant<value_ints = [0, 0]>() "
                "y0 = Slice(x, z, m) y = Identity(y0)"
            ),
            (4, 6),
        ),
        (
            (
                "s = Shape<end = 1>(x) one = Constant<value_ints = [1]>() is = Greater(s, one) "
                "six = Constant<value_ints = [6]>() n = Where(is, s, one) "
                "t = Concat<axis = 0>(n, six) y = Reshape(x, t)"
            ),
            (4, 6),
        ),
        (
            (
                "s = Shape(x) i = Constant<value_ints = [1]>() u = Constant<value_ints = [6]>() "
                "t = ScatterElements(s, i, u) y = Reshape(x, t)"
            ),
            (4, 6),
        ),
        (
            (
                "s = Shape<end = 1>(x) v = Neg(s) w = Abs(v) six = Constant<value_ints = [6]>() "
                "t = Concat<axis = 0>(w, six) y = Reshape(x, t)"
            ),
            (4, 6),
        ),
        (
            (
                "s = Shape<end = 1>(x) z = Constant<value_int = 0>() e = Squeeze(s) o = Constant<value_int = 1>() "
                "r = Range(z, e, o) y = Cast<to = 1>(r)"
            ),
            (4,),
        ),
        (
            (
                "s = Shape(x) a, b = Split<axis = 0, num_outputs = 2>(s) k = Constant<value_ints = [0, 1]>() "
                "none, d = Split<axis = -1>(b, k) t = Concat<axis = 0>(d, none, a) y = Reshape(x, t)"
            ),
            (6, 4),
        ),
    ],
    ids=["equal-where", "reduce-prod", "min", "greater", "scatter", "neg-abs", "range", "split"],
)
def test_a_shape_with_symbols_is_followed(nodes: str, expected: tuple[int, ...]) -> None:
    assert shape_of(nodes) == expected


def test_a_comparison_that_symbols_leave_open_is_refused() -> None:
    nodes = (
        "s = Shape<end = 1>(x) four = Constant<value_ints = [4]>() is = Less(s, four) "
        "six = Constant<value_ints = [6]>() n = Where(is, s, four) t = Concat<axis = 0>(n, six) y = Expand(x, t)"
    )
    with pytest.raises(UnsupportedGraphError, match="whether n or 4 is greater depends on symbols"):
        load(model(nodes), symbols=SYMBOLS)


def test_known_values_are_folded_by_the_operator() -> None:
    nodes = (
        "a = Constant<value_floats = [2.0, 9.0]>() r = Sqrt(a) f = Floor(r) i = Cast<to = 7>(f) "
        "p = ReduceProd(i) w = Div(p, p) o = Constant<value_ints = [2]>() z = Expand(w, o) y = Tile(x, z)"
    )
    assert shape_of(nodes) == (4, 6)


def test_an_error_names_the_inputs_that_would_have_to_be_known() -> None:
    proto = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]> '
        "g (float[4] x, int64[1] size, int64[1] other) => (float[] y) { t = Mul(size, other) y = Reshape(x, t) }"
    )
    with pytest.raises(UnsupportedGraphError, match="pass 'size', 'other' in `constants`"):
        load(proto)
    fixed = {"size": np.array([2]), "other": np.array([2])}
    assert load(proto, constants=fixed).graph.types[load(proto, constants=fixed).outputs["y"]].shape == (4,)


def test_sizes_are_data_where_an_operator_computes_with_them() -> None:
    nodes = (
        "s = Shape(x) f = Cast<to = 1>(s) r = Sqrt(f) z = Constant<value_int = 0>() n = Gather(s, z) "
        "h = Cast<to = 6>(n) total = Size(x) m = ReduceSum<keepdims = 0>(x) g = Gather(f, z) y = Div(m, g)"
    )
    proto = model(nodes)
    for name in ("s", "r", "h", "total"):
        proto.graph.output.add(name=name).type.tensor_type.SetInParent()
    imported = load(proto, symbols=SYMBOLS)
    found = evaluate(imported.graph, *imported.arguments(x=np.ones((5, 6), np.float32)), n=5)
    wanted = [np.float32(6), np.array([5, 6]), np.sqrt(np.array([5, 6], np.float32)), np.int32(5), np.int64(30)]
    for actual, expected in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(actual, expected)
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)


@pytest.mark.parametrize("n", [2, 8])
def test_a_row_of_a_table_is_gathered_at_a_size(n: int) -> None:
    """As for the position of the next token, which follows from the length of a cache."""
    table = ", ".join(f"{place}.0" for place in range(9))
    nodes = (
        f"w = Constant<value_floats = [{table}]>() s = Shape<end = 1>(x) one = Constant<value_ints = [1]>() "
        "t = Sub(s, one) e = Squeeze(s) b = Squeeze(t) i = Constant<value_int = 1>() r = Range(b, e, i) "
        "g = Gather(w, r) h = Gather(w, s) y = Concat<axis = 0>(g, h)"
    )
    imported = load(model(nodes), symbols=SYMBOLS)
    x = np.ones((n, 6), np.float32)
    for run in (evaluate, checked.run_graph):
        (y,) = run(imported.graph, *imported.arguments(x=x), n=n)
        assert y.tolist() == [n - 1, n]


def test_a_shape_of_computed_sizes_says_what_fixes_them() -> None:
    nodes = "s = Shape(x) f = Cast<to = 1>(s) r = Sqrt(f) t = Cast<to = 7>(r) y = Expand(x, t)"
    with pytest.raises(UnsupportedGraphError, match="computed from sizes, which `symbols` fixes"):
        load(model(nodes), symbols=SYMBOLS)


@pytest.mark.parametrize("n", [2, 3, 8])
def test_a_slice_backwards_begins_with_the_first_element_where_it_would_begin_before_it(n: int) -> None:
    nodes = (
        "b = Constant<value_ints = [-3]>() e = Constant<value_ints = [-9]>() a = Constant<value_ints = [0]>() "
        "p = Constant<value_ints = [-2]>() y = Slice(x, b, e, a, p)"
    )
    imported = load(model(nodes), symbols=SYMBOLS)
    x = np.arange(n * 6, dtype=np.float32).reshape(n, 6)
    (y,) = evaluate(imported.graph, *imported.arguments(x=x), n=n)
    np.testing.assert_array_equal(y, x[max(n - 3, 0) :: -2])
    fixed = load(model(nodes), symbols={"n": n})
    np.testing.assert_array_equal(evaluate(fixed.graph, *fixed.arguments(x=x))[0], y)


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_edges_of_a_dynamic_axis_are_repeated(mode: Any) -> None:
    nodes = f'w = Constant<value_ints = [1, 2, 1, 0]>() y = Pad<mode = "{mode}">(x, w)'
    imported = load(model(nodes), symbols=SYMBOLS)
    for n in (2, 5):
        x = np.arange(n * 6, dtype=np.float32).reshape(n, 6)
        (y,) = evaluate(imported.graph, *imported.arguments(x=x), n=n)
        np.testing.assert_array_equal(y, np.pad(x, ((1, 1), (2, 0)), mode))
    with pytest.raises(UnsupportedGraphError, match="of size n, which may be 0"):
        load(model(nodes), symbols={"n": (0, 8)})


def test_a_triangle_of_flags() -> None:
    nodes = "c = Cast<to = 9>(x) t = Trilu<upper = 0>(c) y = Cast<to = 1>(t)"
    imported = load(model(nodes), symbols=SYMBOLS)
    (y,) = evaluate(imported.graph, *imported.arguments(x=np.ones((3, 6), np.float32)), n=3)
    np.testing.assert_array_equal(y, np.tri(3, 6))


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("how", ["asymmetric", "half_pixel"])
def test_a_dynamic_axis_is_resized_by_a_whole_number(mode: str, how: str) -> None:
    attributes = f'mode = "{mode}", coordinate_transformation_mode = "{how}"'
    by_scale = f"s = Constant<value_floats = [3.0, 1.0]>() y = Resize<{attributes}>(x, , s)"
    by_size = f"i = Shape(x) k = Constant<value_ints = [3, 1]>() s = Mul(i, k) y = Resize<{attributes}>(x, , , s)"
    for n in (2, 5):
        x = np.random.default_rng(n).standard_normal((n, 6)).astype(np.float32)
        fixed = load(model(by_scale), symbols={"n": n})
        (expected,) = evaluate(fixed.graph, *fixed.arguments(x=x))
        assert expected.shape == (3 * n, 6)
        for nodes in (by_scale, by_size):
            imported = load(model(nodes), symbols=SYMBOLS)
            (y,) = evaluate(imported.graph, *imported.arguments(x=x), n=n)
            np.testing.assert_allclose(y, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("attributes", "scale", "message"),
    [
        ('mode = "linear"', 1.5, "by a factor that is not a whole number"),
        (
            'mode = "linear", coordinate_transformation_mode = "align_corners"',
            2.0,
            "by align_corners: its size must be known",
        ),
        ('mode = "linear"', 65.0, "becomes 65 times as long; the limit is 64"),
    ],
)
def test_a_dynamic_axis_that_is_resized_otherwise_must_be_known(attributes: str, scale: float, message: str) -> None:
    nodes = f"s = Constant<value_floats = [{scale}, 1.0]>() y = Resize<{attributes}>(x, , s)"
    with pytest.raises(UnsupportedGraphError, match=message):
        load(model(nodes), symbols=SYMBOLS)
