"""The wire form of the 45 node kinds, one frozen model each, by family.

Every node has `operands` (the vars it reads, in field order) and `out_var` (None for a sink alone).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..on_first_use import on_first_use

if TYPE_CHECKING:
    from .constants import ConstScalar as ConstScalar
    from .constants import Vconst as Vconst
    from .conversion import Bitcast as Bitcast
    from .conversion import Cast as Cast
    from .custom import Custom as Custom
    from .custom import CustomAttr as CustomAttr
    from .elementwise import Binop as Binop
    from .elementwise import BinopKind as BinopKind
    from .elementwise import Ternary as Ternary
    from .elementwise import TernaryKind as TernaryKind
    from .elementwise import Unary as Unary
    from .elementwise import UnaryKind as UnaryKind
    from .indexing import Gather as Gather
    from .indexing import Gep as Gep
    from .indexing import Index as Index
    from .indexing import Scatter as Scatter
    from .indexing import ScatterKind as ScatterKind
    from .indexing import Valid as Valid
    from .indexing import Vectorize as Vectorize
    from .markers import ContiguousBackward as ContiguousBackward
    from .markers import Detach as Detach
    from .markers import Device as Device
    from .markers import Fuse as Fuse
    from .markers import Noop as Noop
    from .markers import Unique as Unique
    from .markers import Unroll as Unroll
    from .memory import Assign as Assign
    from .memory import Buffer as Buffer
    from .memory import BufferView as BufferView
    from .memory import Contiguous as Contiguous
    from .memory import Copy as Copy
    from .memory import Placeholder as Placeholder
    from .movement import Cat as Cat
    from .movement import Expand as Expand
    from .movement import Flip as Flip
    from .movement import Pad as Pad
    from .movement import Permute as Permute
    from .movement import Reshape as Reshape
    from .movement import ShapeTracker as ShapeTracker
    from .movement import Shrink as Shrink
    from .movement import View as View
    from .movement import ViewSpec as ViewSpec
    from .program import NODE_KINDS as NODE_KINDS
    from .program import AnyNode as AnyNode
    from .program import Kernel as Kernel
    from .program import KernelMetadata as KernelMetadata
    from .program import Multi as Multi
    from .program import Node as Node
    from .program import Region as Region
    from .program import Sink as Sink
    from .program import While as While
    from .program import out_vars as out_vars
    from .random import Threefry as Threefry
    from .reduction import Contract as Contract
    from .reduction import ReduceAxis as ReduceAxis
    from .reduction import ReduceKind as ReduceKind
    from .reduction import Wmma as Wmma
    from .symbolic import Bind as Bind
    from .symbolic import DefineVar as DefineVar
    from .symbolic import SymVar as SymVar

__getattr__ = on_first_use(
    __name__,
    {
        "constants": "ConstScalar Vconst",
        "conversion": "Bitcast Cast",
        "custom": "Custom CustomAttr",
        "elementwise": "Binop BinopKind Ternary TernaryKind Unary UnaryKind",
        "indexing": "Gather Gep Index Scatter ScatterKind Valid Vectorize",
        "markers": "ContiguousBackward Detach Device Fuse Noop Unique Unroll",
        "memory": "Assign Buffer BufferView Contiguous Copy Placeholder",
        "movement": "Cat Expand Flip Pad Permute Reshape ShapeTracker Shrink View ViewSpec",
        "program": "AnyNode Kernel KernelMetadata Multi Node Region Sink While NODE_KINDS out_vars",
        "random": "Threefry",
        "reduction": "Contract ReduceAxis ReduceKind Wmma",
        "symbolic": "Bind DefineVar SymVar",
    },
)

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
    "Region",
    "Reshape",
    "Scatter",
    "ScatterKind",
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
    "While",
    "Wmma",
    "out_vars",
]
