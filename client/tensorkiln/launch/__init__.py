"""Launch sizes: expressions for grid sizes, their checked 64-bit evaluation, and conversion from and to dims."""

from .dims import dim_from_launch, launch_from_dim
from .evaluate import LaunchDims, evaluate_launch, resolve_launch_dims
from .nodes import (
    After,
    Binary,
    BinaryOp,
    Bind,
    BitCast,
    Cast,
    Const,
    DefineVar,
    LaunchNode,
    Ternary,
    TernaryOp,
    Unary,
    UnaryOp,
    Variable,
)

__all__ = [
    "After",
    "Binary",
    "BinaryOp",
    "Bind",
    "BitCast",
    "Cast",
    "Const",
    "DefineVar",
    "LaunchDims",
    "LaunchNode",
    "Ternary",
    "TernaryOp",
    "Unary",
    "UnaryOp",
    "Variable",
    "dim_from_launch",
    "evaluate_launch",
    "launch_from_dim",
    "resolve_launch_dims",
]
