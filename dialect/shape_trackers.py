"""Shape trackers as attributes: `{views = [{shape, strides, offset, mask}], shape}`, the mask being optional."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorkiln.expr import Dim
from tensorkiln.nodes import ShapeTracker, ViewSpec

from .fields import (
    Field,
    decode_dim,
    decode_dim_pairs,
    decode_dims,
    encode_dim,
    encode_dim_pairs,
    encode_dims,
)
from .mlir import ir
from .rules import same_shape, shape_text


def shape_tracker() -> Field[ShapeTracker]:
    return Field(ir.DictAttr, _encode, _decode)


def tracker_problem(tracker: ShapeTracker, shape: Sequence[Dim]) -> str | None:
    """The reason why the tracker cannot give a result of `shape`, or None."""
    if not tracker.views or tracker.shape != tracker.views[-1].shape:
        return "the shape of the tracker is not that of its last view"
    for view in tracker.views:
        if len(view.strides) != len(view.shape) or (view.mask is not None and len(view.mask) != len(view.shape)):
            return f"a view of shape {shape_text(view.shape)} has another number of strides or of mask entries"
    return same_shape(tracker.shape, shape)


def _encode(tracker: ShapeTracker) -> ir.Attribute:
    views = ir.ArrayAttr.get([_encode_view(view) for view in tracker.views])
    return ir.DictAttr.get({"views": views, "shape": encode_dims(tracker.shape)})


def _encode_view(view: ViewSpec) -> ir.Attribute:
    entries = {
        "shape": encode_dims(view.shape),
        "strides": encode_dims(view.strides),
        "offset": encode_dim(view.offset),
    }
    if view.mask is not None:
        entries["mask"] = encode_dim_pairs(view.mask)
    return ir.DictAttr.get(entries)


def _decode(attribute: Any) -> ShapeTracker:
    # The tracker was validated when it was written.
    return ShapeTracker.model_construct(
        views=tuple(_decode_view(view) for view in attribute["views"]), shape=decode_dims(attribute["shape"])
    )


def _decode_view(attribute: Any) -> ViewSpec:
    return ViewSpec.model_construct(
        shape=decode_dims(attribute["shape"]),
        strides=decode_dims(attribute["strides"]),
        offset=decode_dim(attribute["offset"]),
        mask=decode_dim_pairs(attribute["mask"]) if "mask" in attribute else None,
    )
