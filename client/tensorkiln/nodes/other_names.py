"""Node kinds of other formats, and their replacements in this wire format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_PRODUCT: Final = "a matrix product is a binop mul and a reduce_axis sum, which x @ y of tensorkiln.build writes"
_BINOP: Final = 'write the node binop with "op": "{}"'
_UNARY: Final = 'write the node unary with "op": "{}"'
_REDUCE: Final = 'write the node reduce_axis with "reduce_op_kind": "{}"'
_BUILDER: Final = "{} of tensorkiln.build writes the nodes that compute it"
_COMPOSED: Final = (
    *("relu", "exp", "log", "tanh", "sigmoid", "gelu", "erf"),
    *("softmax", "layer_norm", "conv2d", "max_pool2d", "einsum"),
)

MEANT: Final[Mapping[str, str]] = {
    **dict.fromkeys(("matmul", "dot", "gemm", "linear", "dense", "mm", "bmm"), _PRODUCT),
    **{name: _BINOP.format(op) for name, op in {"subtract": "sub", "multiply": "mul", "divide": "fdiv"}.items()},
    **{name: _BINOP.format(name) for name in ("add", "sub", "mul", "pow", "mod", "idiv", "fdiv", "xor", "shl", "shr")},
    "div": _BINOP.format("fdiv"),
    "maximum": _BINOP.format("max"),
    "minimum": _BINOP.format("min"),
    **{name: _UNARY.format(name) for name in ("neg", "exp2", "log2", "sin", "sqrt", "recip", "trunc")},
    **{
        name: _REDUCE.format(kind)
        for name, kind in {"sum": "sum", "max": "max", "prod": "prod", "reduce": "sum"}.items()
    },
    **{name: _BUILDER.format(name) for name in _COMPOSED},
    **dict.fromkeys(("input", "parameter", "arg", "argument"), "write the node placeholder"),
    **dict.fromkeys(("const", "constant", "scalar", "literal"), "write the node const_scalar, or vconst for a table"),
    **dict.fromkeys(("where", "select", "mulacc"), "write the node ternary"),
    "transpose": "write the node permute",
    "concat": "write the node cat",
    "concatenate": "write the node cat",
    "slice": "write the node shrink",
    "broadcast": "write the node expand",
    "broadcast_to": "write the node expand",
    "convert": "write the node cast",
    "output": "name the outputs in output_vars",
}
