"""NonMaxSuppression of known boxes and scores: the shape of the result depends on their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from .node import Node
from .value import Host, Value

MAX_BOXES: Final = 1 << 18
"""The most boxes of all images and classes together, since each is processed on its own."""
MAX_COMPARED: Final = 1 << 28
"""The most pairs of a box and a kept box, since each box may be compared with all kept ones."""


def non_max_suppression(node: Node) -> Value:
    """(image, class, box) of each remaining box, best first; boxes that overlap a better one are dropped."""
    boxes, scores = node.host(0), node.host(1)
    is_centre = node.integer("center_point_box", 0) == 1
    if (
        boxes.ndim != 3
        or scores.ndim != 3
        or boxes.shape[2] != 4
        or boxes.shape[:2] != (scores.shape[0], scores.shape[2])
    ):
        node.invalid(f"boxes {boxes.shape} and scores {scores.shape} do not fit")
    most = node.known_integer(2) if node.has(2) else 0
    overlap = float(node.host(3).reshape(-1)[0]) if node.has(3) else 0.0
    least = float(node.host(4).reshape(-1)[0]) if node.has(4) else float("-inf")
    left = max(min(most, scores.shape[2]), 0)
    if left and scores.size > MAX_BOXES:
        node.fail(f"{scores.size} boxes of all images and classes are more than {MAX_BOXES}")
    if scores.size * left > MAX_COMPARED:
        node.fail(f"{scores.size} boxes, of which up to {left} are left, are more than {MAX_COMPARED} pairs")
    found = [
        (image, kind, box)
        for image in range(scores.shape[0])
        for kind in range(scores.shape[1])
        for box in _left(_corners(boxes[image], is_centre), scores[image, kind], most, overlap, least)
    ]
    return np.asarray(found, np.int64).reshape(-1, 3)


def _corners(boxes: Host, is_centre: bool) -> Host:
    """(boxes, 4): the lower corner, then the upper corner, in float32."""
    if is_centre:
        middle, half = boxes[:, :2], boxes[:, 2:] / np.float32(2)
        return np.concatenate([middle - half, middle + half], 1)
    return np.concatenate([np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])], 1)


def _left(corners: Host, scores: Host, most: int, overlap: float, least: float) -> list[int]:
    order = [place for place in np.argsort(-scores, kind="stable").tolist() if scores[place] > least]
    kept: list[int] = []
    for place in order:
        if len(kept) >= most:
            break
        if not kept or not (_shared(corners[place], corners[kept]) > overlap).any():
            kept.append(place)
    return kept


def _shared(box: Host, others: Host) -> Host:
    """The intersection over union with each other box; 0 where either has no area."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    common = np.where((sides > 0).all(1), sides.prod(1), 0)
    own, area = np.prod(box[2:] - box[:2]), np.prod(others[:, 2:] - others[:, :2], 1)
    union = own + area - common
    has_area = (common > 0) & (own > 0) & (area > 0) & (union > 0)
    return np.where(has_area, common / np.where(has_area, union, 1), 0)


OPERATORS: dict[str, Callable[[Node], Value]] = {"NonMaxSuppression": non_max_suppression}
