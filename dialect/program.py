"""Ops about other ops and about devices."""

from typing import Any

from tensorkiln.nodes import KernelMetadata

from .fields import Field, flags, integer, optional
from .mlir import ext, ir
from .operation import IdentityOp, MixedOperandsOp
from .rules import distinct_axes, same_dtype


class SinkOp(MixedOperandsOp, name="sink"):
    """Keeps its values alive; has no result. A node with many types of dependencies may take several."""


def _encode_metadata(metadata: KernelMetadata) -> ir.Attribute:
    int64 = ir.IntegerType.get_signless(64)
    return ir.DictAttr.get(
        {
            "name": ir.StringAttr.get(metadata.name),
            "local_dims": ir.IntegerAttr.get(int64, metadata.local_dims),
            "upcasted": ir.IntegerAttr.get(int64, metadata.upcasted),
            "dont_use_locals": ir.BoolAttr.get(metadata.dont_use_locals),
        }
    )


def _decode_metadata(attribute: Any) -> KernelMetadata:
    return KernelMetadata(
        name=attribute["name"].value,
        local_dims=attribute["local_dims"].value,
        upcasted=attribute["upcasted"].value,
        dont_use_locals=bool(attribute["dont_use_locals"].value),
    )


class KernelOp(IdentityOp, name="kernel", traits=[ext.Pure]):
    """Identity of an output of a kernel node; carries the node's name and hints.

    The node that the kernel wraps is an op of its own before this one. A kernel of several outputs is one op for each.
    """

    metadata = Field(ir.DictAttr, _encode_metadata, _decode_metadata)


class MultiOp(MixedOperandsOp, name="multi", traits=[ext.Pure]):
    """A tensor over devices: the first value (`axis` None), or those marked in `real_mask` joined along `axis`."""

    axis = optional(integer())
    real_mask = flags()
    result: ext.Result[Any]

    def problem(self) -> str | None:
        parts, result, axis = self.inputs, self.tensor, self.axis
        if not parts or any(part.rank != result.rank for part in parts):
            return f"parts of the ranks {[part.rank for part in parts]} do not make rank {result.rank}"
        if axis is None:
            return same_dtype(*parts, result)
        if len(self.real_mask) != len(parts):
            return f"real_mask has {len(self.real_mask)} entries for {len(parts)} values"
        return same_dtype(*parts, result) or distinct_axes([axis], result.rank, "axis")
