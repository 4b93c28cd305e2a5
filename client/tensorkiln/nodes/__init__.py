"""The wire form of the 44 node kinds, one frozen model each, by family.

Every node has `operands` (the vars it reads, in field order) and `out_var` (None for a sink alone).
"""

from typing import get_args

from .constants import ConstScalar, Vconst
from .conversion import Bitcast, Cast
from .custom import Custom, CustomAttr
from .elementwise import Binop, BinopKind, Ternary, TernaryKind, Unary, UnaryKind
from .indexing import Gather, Gep, Index, Scatter, Valid, Vectorize
from .markers import ContiguousBackward, Detach, Device, Fuse, Noop, Unique, Unroll
from .memory import Assign, Buffer, BufferView, Contiguous, Copy, Placeholder
from .movement import Cat, Expand, Flip, Pad, Permute, Reshape, ShapeTracker, Shrink, View, ViewSpec
from .program import AnyNode, Kernel, KernelMetadata, Multi, Node, Sink
from .random import Threefry
from .reduction import Contract, ReduceAxis, ReduceKind, Wmma
from .symbolic import Bind, DefineVar, SymVar

NODE_KINDS: dict[str, type[AnyNode]] = {model.model_fields["node"].default: model for model in get_args(AnyNode)}
"""The model of each kind by its name on the wire."""


def out_vars(node: AnyNode) -> tuple[int, ...]:
    """Every var that `node` defines: all `output_vars` of a kernel, nothing for a sink, else its `out_var`."""
    if type(node) is Kernel:
        return node.output_vars
    var = node.out_var
    return () if var is None else (var,)


__all__ = [
    "NODE_KINDS",
    "AnyNode",
    "Assign",
    "Bind",
    "Binop",
    "BinopKind",
    "Bitcast",
    "Buffer",
    "BufferView",
    "Cast",
    "Cat",
    "ConstScalar",
    "Contiguous",
    "ContiguousBackward",
    "Contract",
    "Copy",
    "Custom",
    "CustomAttr",
    "DefineVar",
    "Detach",
    "Device",
    "Expand",
    "Flip",
    "Fuse",
    "Gather",
    "Gep",
    "Index",
    "Kernel",
    "KernelMetadata",
    "Multi",
    "Node",
    "Noop",
    "Pad",
    "Permute",
    "Placeholder",
    "ReduceAxis",
    "ReduceKind",
    "Reshape",
    "Scatter",
    "ShapeTracker",
    "Shrink",
    "Sink",
    "SymVar",
    "Ternary",
    "TernaryKind",
    "Threefry",
    "Unary",
    "UnaryKind",
    "Unique",
    "Unroll",
    "Valid",
    "Vconst",
    "Vectorize",
    "View",
    "ViewSpec",
    "Wmma",
    "out_vars",
]
