"""Bytes that are no model are an error of ours, whatever protobuf and onnx make of them."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tensorkiln.errors import InvalidGraphError, TensorkilnError
from tensorkiln.frontends.onnx import load

MUTATIONS = 500


def model() -> ModelProto:
    weight = numpy_helper.from_array(np.ones((4, 3), np.float32), "w")
    shape = numpy_helper.from_array(np.array([2, 6], np.int64), "s")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"], name="product"),
        helper.make_node("Reshape", ["y", "s"], ["z"]),
        helper.make_node("Softmax", ["z"], ["o"], axis=-1),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 4])]
    outputs = [helper.make_tensor_value_info("o", TensorProto.FLOAT, [2, 6])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [weight, shape])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize("suffix", [".onnx", ".json", ".textproto"])
@pytest.mark.parametrize("content", [b"", b"garbage", b"\x00\x01\x02", b"{{"])
def test_a_garbage_file_is_refused_by_its_name_or_for_having_no_graph(
    tmp_path: Path, suffix: str, content: bytes
) -> None:
    path = tmp_path / f"model{suffix}"
    path.write_bytes(content)
    with pytest.raises(InvalidGraphError, match=r"model\.\w+ cannot be read as an ONNX model|it has no graph"):
        load(path)


def test_garbage_bytes_are_refused() -> None:
    with pytest.raises(InvalidGraphError, match="the text cannot be read as an ONNX model"):
        load(b"\xff" * 100)


def test_a_weight_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save_model(model(), path, save_as_external_data=True, location="weights", size_threshold=0)
    assert load(path).graph.nodes
    (tmp_path / "weights").write_bytes(b"short")
    with pytest.raises(InvalidGraphError, match="tensor 'w'"):
        load(path)
    broken = model()
    broken.graph.initializer[0].raw_data = b"123"
    with pytest.raises(InvalidGraphError, match="the initializer 'w' cannot be read"):
        load(broken)


def test_an_element_type_that_does_not_exist_is_refused() -> None:
    broken = model()
    broken.graph.input[0].type.tensor_type.elem_type = 99
    with pytest.raises(InvalidGraphError, match="'x' has the element type 99"):
        load(broken)


def test_a_node_without_an_input_that_it_needs_is_named() -> None:
    broken = model()
    del broken.graph.node[0].input[1]
    with pytest.raises(InvalidGraphError, match="MatMul product: input 1 is missing"):
        load(broken)


def test_a_name_that_is_not_utf_8_is_refused() -> None:
    text = model().SerializeToString().replace(b"product", b"pr\xffduct")
    with pytest.raises(InvalidGraphError, match="is not UTF-8"):
        load(text)


def test_damage_anywhere_is_an_error_of_ours_or_harmless() -> None:
    whole = model().SerializeToString()
    chance = random.Random(0)
    for _ in range(MUTATIONS):
        content = bytearray(whole)
        position = chance.randrange(len(content))
        match chance.randrange(3):
            case 0:
                del content[position:]
            case 1:
                del content[position : position + chance.randint(1, 9)]
            case _:
                content[position] = chance.randrange(256)
        with suppress(TensorkilnError):
            load(bytes(content))
