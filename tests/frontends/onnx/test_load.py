"""What an import accepts, what it folds, and what it refuses by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tensorkiln.errors import CallInputError, InvalidGraphError, RequestError, UnsupportedGraphError
from tensorkiln.frontends.onnx import load
from tensorkiln.reference import evaluate

Array = np.ndarray[Any, Any]


def model(
    *nodes: NodeProto,
    x: tuple[int | str | None, ...] = (2, 3),
    opset: int = 9,
    weights: dict[str, Array] | None = None,
    name: str = "g",
    domain: str = "",
) -> ModelProto:
    """A model of one float input `x` and one output `y`."""
    graph = helper.make_graph(
        list(nodes),
        name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, opset)], ir_version=8)


def node(op: str, inputs: str = "x", outputs: str = "y", **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs.split(), outputs.split(), name=f"the_{op}", **attributes)


def kinds(loaded: Any) -> list[str]:
    return [each.node for each in loaded.graph.nodes]


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_a_model_is_read_from_a_file_from_bytes_and_from_an_object(tmp_path: Path):
    proto = model(node("Relu"))
    file = tmp_path / "m.onnx"
    onnx.save(proto, file)
    graphs = [load(source).graph for source in (proto, proto.SerializeToString(), file, str(file))]
    assert all(graph == graphs[0] for graph in graphs)


def test_weights_in_a_file_of_their_own_are_found(tmp_path: Path):
    weight = np.random.default_rng(0).random((3, 1000)).astype(np.float32)
    proto = model(node("MatMul", "x w"), weights={"w": weight})
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0)
    (array,) = load(tmp_path / "m.onnx").parameters.values()
    np.testing.assert_array_equal(array, weight)


def test_weights_are_inputs_and_never_constants():
    loaded = load(model(node("Mul", "x w", "t"), node("Add", "t s"), weights={"w": X, "s": np.array(3, np.float32)}))
    assert kinds(loaded).count("placeholder") == 3
    assert "const_scalar" not in kinds(loaded)
    assert "vconst" not in kinds(loaded)
    np.testing.assert_array_equal(evaluate(loaded.graph, *loaded.arguments(x=X))[0], X * X + 3)


def test_two_models_that_differ_in_weights_are_one_graph():
    first, second = (load(model(node("Add", "x w"), weights={"w": X * scale})) for scale in (1, 2))
    assert first.graph == second.graph


def test_a_weight_that_two_nodes_read_is_one_parameter():
    loaded = load(model(node("Add", "x w", "t"), node("Mul", "t w"), weights={"w": X}))
    assert len(loaded.parameters) == 1


def test_weights_listed_as_inputs_are_weights_all_the_same():
    proto = model(node("Add", "x w"), weights={"w": X})
    proto.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, (2, 3)))
    assert list(load(proto).inputs) == ["x"]


def test_an_input_may_have_the_name_of_a_parameter_of_python():
    proto = model(node("Add", "self w"), weights={"w": X})
    proto.graph.input[0].name = "self"
    loaded = load(proto)
    np.testing.assert_array_equal(evaluate(loaded.graph, *loaded.arguments(self=X))[0], 2 * X)


def test_nodes_of_weights_alone_are_folded():
    loaded = load(
        model(
            node("Unsqueeze", "w", "u", axes=[0, 2]),
            node("Transpose", "u", "t", perm=[2, 0, 1]),
            node("Squeeze", "t", "q", axes=[0, 1]),
            node("Mul", "q q", "s"),
            node("Add", "x s"),
            weights={"w": np.array([1, 2, 3], np.float32)},
        )
    )
    assert [kind for kind in kinds(loaded) if kind not in ("placeholder", "reshape", "expand")] == ["binop"]
    np.testing.assert_array_equal(evaluate(loaded.graph, *loaded.arguments(x=X))[0], X + np.array([1, 4, 9]))


def test_batch_normalisation_with_known_statistics_is_one_product_and_one_sum():
    weights = {name: np.array([1, 2, 3], np.float32) for name in ("scale", "bias", "mean", "var")}
    loaded = load(model(node("BatchNormalization", "x scale bias mean var", epsilon=0.5), weights=weights))
    assert kinds(loaded).count("binop") == 2
    expected = (X - [1, 2, 3]) / np.sqrt(np.array([1.5, 2.5, 3.5])) * [1, 2, 3] + [1, 2, 3]
    np.testing.assert_allclose(evaluate(loaded.graph, *loaded.arguments(x=X))[0], expected, rtol=1e-6)


def test_shapes_computed_from_a_symbolic_shape_fold_to_expressions():
    proto = model(
        node("Shape", "x", "shape"),
        node("Slice", "shape", "rows", starts=[0], ends=[1]),
        node("Mul", "rows two", "rows2"),
        node("Div", "width two", "half"),
        node("Concat", "rows2 half", "wanted", axis=0),
        node("Reshape", "x wanted"),
        x=("n", 6),
        weights={"two": np.array([2], np.int64), "width": np.array([6], np.int64)},
    )
    loaded = load(proto, symbols={"n": (1, 9)})
    assert kinds(loaded) == ["placeholder", "reshape"]
    assert [str(dim) for dim in loaded.graph.types[loaded.outputs["y"]].shape] == ["2*n", "3"]


def test_inputs_that_shapes_depend_on_can_be_fixed():
    proto = model(node("Reshape", "x shape"), opset=13)
    proto.graph.input.append(helper.make_tensor_value_info("shape", TensorProto.INT64, (2,)))
    with pytest.raises(UnsupportedGraphError, match="Reshape the_Reshape: input 1 is computed at run time"):
        load(proto)
    loaded = load(proto, constants={"shape": np.array([3, -1])})
    assert list(loaded.inputs) == ["x"]
    assert loaded.graph.types[loaded.outputs["y"]].shape == (3, 2)
    with pytest.raises(CallInputError, match="'size'"):
        load(proto, constants={"size": np.array([3, -1])})
    assert load(proto, constants={"shape": np.array([3, -1], np.int32)}).graph == loaded.graph
    with pytest.raises(CallInputError, match="'shape' is of int64; the array that fixes it is of float64"):
        load(proto, constants={"shape": np.array([3.0, 2.0])})


def test_dynamic_dims_become_symbols_with_the_given_bounds():
    proto = model(node("Relu"), x=("batch-size", None))
    loaded = load(proto, symbols={"batch-size": (1, 8), "x_1": (2, 4)})
    assert dict(loaded.graph.symbols) == {"batch_size": (1, 8), "x_1": (2, 4)}
    assert load(proto, symbols={"batch-size": 2, "x_1": 3}).graph.symbols == {}
    with pytest.raises(UnsupportedGraphError, match=r"axis 1 of the input 'x' is dynamic.*'x_1': "):
        load(proto, symbols={"batch-size": (1, 8)})
    with pytest.raises(RequestError, match="no dynamic dimension 'n'; they are batch-size, x_1"):
        load(proto, symbols={"batch-size": (1, 8), "x_1": (2, 4), "n": 3})


@pytest.mark.parametrize(("axis", "over"), [(0, (0, 1, 2)), (1, (1, 2)), (2, (2,)), (-1, (2,)), (None, (1, 2))])
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_before_opset_13_a_softmax_flattens_at_its_axis(op: str, axis: int | None, over: tuple[int, ...]):
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    loaded = load(model(node(op, **attributes), x=x.shape))
    raised = np.exp(x.astype(np.float64))
    expected = raised / raised.sum(over, keepdims=True)
    expected = np.log(expected) if op == "LogSoftmax" else expected
    np.testing.assert_allclose(evaluate(loaded.graph, *loaded.arguments(x=x))[0], expected, rtol=1e-5)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("width", [7, 8, "w"])
def test_auto_padding_gives_one_window_a_stride(mode: str, stride: int, width: int | str):
    size = 8 if isinstance(width, str) else width
    x = np.random.default_rng(0).standard_normal((1, 1, size)).astype(np.float32)
    attributes: dict[str, Any] = {"kernel_shape": [4], "strides": [stride], "auto_pad": mode}
    loaded = load(model(node("MaxPool", **attributes), x=(1, 1, width)), symbols={"w": (4, 99)} if width == "w" else {})
    count = (size - 4) // stride + 1 if mode == "VALID" else -(-size // stride)
    total = max((count - 1) * stride + 4 - size, 0)
    before = 0 if mode == "VALID" else total // 2 if mode == "SAME_UPPER" else total - total // 2
    padded = np.pad(x[0, 0], (before, 99), constant_values=-np.inf)
    expected = [padded[place * stride : place * stride + 4].max() for place in range(count)]
    symbols = {"w": size} if width == "w" else {}
    np.testing.assert_array_equal(evaluate(loaded.graph, *loaded.arguments(x=x), **symbols)[0][0, 0], expected)


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (
            model(node("StringNormalizer")),
            "StringNormalizer the_StringNormalizer: the operator ai.onnx.StringNormalizer is not supported",
        ),
        (model(helper.make_node("Relu", ["x"], ["y"], domain="com.example")), r"Relu #0: .*com\.example\.Relu"),
        (model(node("Relu", secret=1)), "Relu the_Relu: the attribute secret is not supported in opset 9"),
        (model(node("Unsqueeze")), "Unsqueeze the_Unsqueeze"),
        (model(node("Concat", "x x")), "the attribute axis is missing"),
        (model(node("Concat", "x x", axis=1.5)), "the attribute axis has the wrong type"),
        (model(node("Add", "x ")), "Add the_Add: input 1 is missing"),
        (model(node("Relu"), opset=5), "opset 5; supported are 6 to"),
        (model(node("Relu"), opset=99), "opset 99"),
        (model(node("AveragePool", kernel_shape=[2, 2], auto_pad="SAME"), x=(1, 1, 4, 4)), "auto_pad 'SAME'"),
        (model(node("Gemm", "x w", alpha=0.5), weights={"w": np.ones((3, 2), np.int32)}), "Gemm"),
        (model(node("Identity"), weights={"w": np.array(["a"], object)}), ""),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_unsupported_nodes_are_refused_by_kind_and_name(proto: ModelProto, message: str):
    if message == "":
        proto.graph.node[0].input[0] = "w"
        message = "the output 'y': strings are used as data"
    with pytest.raises((UnsupportedGraphError, InvalidGraphError), match=message):
        load(proto)


def test_a_node_whose_shapes_do_not_fit_is_named():
    with pytest.raises(InvalidGraphError, match="Add the_Add: the dimensions 3 and 4 do not broadcast"):
        load(model(node("Add", "x w"), weights={"w": np.ones(4, np.float32)}))


def test_an_output_that_no_node_writes_is_refused():
    with pytest.raises(UnsupportedGraphError, match="no node writes the output 'y'"):
        load(model(node("Relu", "x", "z")))


def test_a_value_that_no_node_writes_is_refused():
    with pytest.raises(InvalidGraphError, match="reads 'q'"):
        load(model(node("Relu", "q")))


def test_an_output_may_be_known_or_an_input_itself():
    loaded = load(model(node("Identity", "x", "y")))
    assert loaded.outputs["y"] == loaded.inputs["x"]
    known = load(model(node("Identity", "w", "y"), weights={"w": X}))
    np.testing.assert_array_equal(evaluate(known.graph, *known.arguments(x=X))[0], X)


def test_arguments_are_checked_by_name():
    with pytest.raises(CallInputError, match="takes the inputs"):
        load(model(node("Relu"))).arguments(z=X)


def test_the_name_of_a_graph_is_spelled_as_an_identifier():
    assert load(model(node("Relu"), name="torch-jit export/1")).graph.name == "torch_jit_export_1"
    assert load(model(node("Relu"), name="9lives")).graph.name == "_9lives"
    assert load(model(node("Relu"), name="")).graph.name == "onnx"
