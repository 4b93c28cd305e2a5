"""Parts of images: cells of regions, boxes that are left, kernels whose places are moved."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.frontends.onnx import load
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import compiled
from tests.frontends.onnx.single_nodes import assert_agrees, of_nodes

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.normal(size=(2, 3, 7, 9)).astype(np.float32)
REGIONS = np.array([[0, 0, 6, 5], [2.5, 1.5, 8, 6], [-3, -2, 3, 4], [4, 3, 30, 20], [5, 5, 2, 2]], np.float32)
OWNERS = np.array([0, 1, 1, 0, 0])


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
def test_cells_of_any_number_of_computed_regions_are_sampled(mode: str, coordinates: str):
    attributes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": coordinates, "spatial_scale": 0.75}
    node = helper.make_node(
        "RoiAlign", ["x", "r", "i"], ["y"], output_height=2, output_width=3, sampling_ratio=2, **attributes
    )
    proto = of_nodes([node], {"x": IMAGES, "r": REGIONS, "i": OWNERS})
    expected: Any = ReferenceEvaluator(proto).run(None, {"x": IMAGES, "r": REGIONS, "i": OWNERS})
    for name in ("r", "i"):
        entry = next(entry for entry in proto.graph.input if entry.name == name)
        entry.type.tensor_type.shape.dim[0].dim_param = "regions"
    model = load(proto, symbols={"regions": (1, 16)})
    (actual,) = evaluate(model.graph, *model.arguments(x=IMAGES, r=REGIONS, i=OWNERS), regions=len(REGIONS))
    np.testing.assert_allclose(actual, expected[0], rtol=1e-5, atol=1e-6)


def test_as_many_samples_as_a_cell_has_elements_are_those_of_known_regions():
    node = helper.make_node("RoiAlign", ["x", "r", "i"], ["y"], output_height=2, output_width=2, mode="avg")
    assert_agrees(of_nodes([node], {"x": IMAGES}, {"r": REGIONS, "i": OWNERS}), {"x": IMAGES})
    with pytest.raises(UnsupportedGraphError, match=r"RoiAlign #0: input 1 is computed .*; pass 'r' in `constants`"):
        load(of_nodes([node], {"x": IMAGES, "r": REGIONS}, {"i": OWNERS}))


def test_the_greatest_element_of_each_cell_is_found():
    regions = np.array([[0, 0, 0, 6, 5], [1, 2, 1, 8, 6], [1, 20, 1, 30, 6]], np.float32)
    expected = np.zeros((3, 3, 2, 3), np.float32)
    for number, (image, *corners) in enumerate(regions.astype(int).tolist()):
        left, top, right, bottom = corners
        for row in range(2):
            for column in range(3):
                high, wide = (bottom - top + 1) / 2, (right - left + 1) / 3
                rows = slice(top + math.floor(row * high), top + math.ceil((row + 1) * high))
                columns = slice(left + math.floor(column * wide), left + math.ceil((column + 1) * wide))
                cell = IMAGES[image, :, rows, columns]
                if cell.size:
                    expected[number, :, row, column] = cell.max((1, 2))
    proto = of_nodes(
        [helper.make_node("MaxRoiPool", ["x", "r"], ["y"], pooled_shape=[2, 3])], {"x": IMAGES, "r": regions}
    )
    model = load(proto)
    (actual,) = evaluate(model.graph, *model.arguments(x=IMAGES, r=regions))
    np.testing.assert_array_equal(actual, expected)


def _pooled(x: Array, *region: float) -> Array:
    node = helper.make_node("MaxRoiPool", ["x", "r"], ["y"], pooled_shape=[1, 1])
    given = {"x": x, "r": np.array([[0, *region]], x.dtype)}
    model = load(of_nodes([node], given))
    (found,) = evaluate(model.graph, *model.arguments(**given))
    assert found.dtype == x.dtype
    return found.reshape(-1)


def test_places_that_float16_does_not_have_are_told_apart():
    x = np.zeros((1, 1, 1, 4100), np.float16)
    x[..., 2048] = 7
    assert _pooled(x, 0, 0, 2048, 0) == 7


def test_the_greatest_of_elements_that_are_all_minus_infinity_is_that():
    x = np.full((1, 1, 3, 4), -np.inf, np.float32)
    assert _pooled(x, 0, 0, 2, 1) == -np.inf
    assert _pooled(x, 10, 0, 12, 1) == 0
    assert _pooled(x, 0, 10, 2, 12) == 0


def test_boxes_that_are_computed_are_refused_because_their_number_is_the_shape():
    boxes, scores = np.zeros((1, 4, 4), np.float32), np.zeros((1, 1, 4), np.float32)
    node = helper.make_node("NonMaxSuppression", ["b", "s"], ["y"])
    with pytest.raises(UnsupportedGraphError, match=r"NonMaxSuppression #0: input 0 is computed at run time"):
        load(of_nodes([node], {"b": boxes, "s": scores}))


@pytest.mark.parametrize(
    ("classes", "most", "message"),
    [
        (1, 1 << 15, "32768 boxes, of which up to 32768 are left, are more than 268435456 pairs"),
        (16, 1, "524288 boxes of all images and classes are more than 262144"),
    ],
)
def test_more_boxes_than_are_compared_here_are_refused(classes: int, most: int, message: str):
    count = 1 << 15
    corners = np.arange(count, dtype=np.float32)[None, :, None] * 2 + np.array([0, 0, 1, 1], np.float32)
    weights = {"b": corners, "s": np.ones((1, classes, count), np.float32), "m": np.array([most])}
    node = helper.make_node("NonMaxSuppression", ["b", "s", "m"], ["y"])
    with pytest.raises(UnsupportedGraphError, match=f"NonMaxSuppression #0: {message}"):
        load(of_nodes([node], {"x": IMAGES}, weights))


def test_a_moved_kernel_of_groups_is_compiled_for_any_number_of_images():
    x, weight = RANDOM.normal(size=(2, 4, 6, 5)).astype(np.float32), RANDOM.normal(size=(6, 2, 3, 2)).astype(np.float32)
    offset = RANDOM.normal(size=(2, 2 * 6 * 2, 3, 6)).astype(np.float32)
    given = {"x": x, "o": offset}
    node = helper.make_node(
        *("DeformConv", ["x", "w", "o"], ["y"]), group=2, offset_group=2, pads=[1, 1, 1, 1], strides=[2, 1]
    )
    proto = of_nodes([node], given, {"w": weight})
    expected: Any = ReferenceEvaluator(proto).run(None, given)
    for entry in proto.graph.input:
        entry.type.tensor_type.shape.dim[0].dim_param = "n"
    assert proto.graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT
    model = load(proto, symbols={"n": (1, 4)})
    (actual,) = checked.run(compiled(model.graph), *model.arguments(**given), n=2)
    np.testing.assert_allclose(actual, expected[0], rtol=1e-4, atol=1e-5)
