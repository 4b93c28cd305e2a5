"""Other libraries' names of this package's methods and functions, with the replacement for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ..nearest import nearest, quoted

_NO_VALUES: Final = (
    "a tensor has no values while the graph is being written: compile the graph and call the program, "
    "or use builder.constant for values that are known"
)
_OPERATORS: Final[Mapping[str, str]] = {
    "add": "+",
    "subtract": "-",
    "sub": "-",
    "multiply": "*",
    "mul": "*",
    "divide": "/",
    "div": "/",
    "true_divide": "/",
    "floor_divide": "//",
    "remainder": "%",
    "mod": "%",
    "greater": ">",
    "greater_equal": ">=",
    "less_equal": "<=",
    "logical_and": "&",
    "logical_or": "|",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "left_shift": "<<",
    "right_shift": ">>",
    "dot": "@",
    "mm": "@",
    "bmm": "@",
}

METHODS: Final[Mapping[str, str]] = {
    **{name: f"write x {sign} y" for name, sign in _OPERATORS.items()},
    "matmul": "write x @ y",
    "pow": "write x ** y",
    **dict.fromkeys(("astype", "to", "type", "float", "half", "double", "int", "long"), 'write x.cast("float32")'),
    **dict.fromkeys(("numpy", "item", "tolist", "data", "values", "cpu", "detach", "eval"), _NO_VALUES),
    **dict.fromkeys(("swapaxes", "swapdims"), "write x.transpose(first, second)"),
    **dict.fromkeys(("view", "view_as"), "write x.reshape(shape)"),
    **dict.fromkeys(("broadcast_to", "repeat", "expand_as"), "write x.expand(shape)"),
    "expand_dims": "write x.unsqueeze(axis)",
    "ravel": "write x.flatten()",
    "concat": "write cat([x, y], axis)",
    "size": "x.shape has the sizes of the axes",
    "nbytes": "x.shape and x.dtype.itemsize make it",
    "var": "write x.var_(axis): var is the number of the tensor in the graph",
    "requires_grad": "graphs have no gradients of their own: write them, or import them from JAX or PyTorch",
    "backward": "graphs have no gradients of their own: write them, or import them from JAX or PyTorch",
    "grad": "graphs have no gradients of their own: write them, or import them from JAX or PyTorch",
    "device": "the target of the compile says where a graph runs",
    "cuda": 'the target of the compile says where a graph runs, as in compile(graph, "sm_90")',
}
"""Names that a tensor lacks, with advice."""

FUNCTIONS: Final[Mapping[str, str]] = {
    **{name: f"write x {sign} y" for name, sign in _OPERATORS.items()},
    **{name: f"write x.{name}(axis)" for name in ("sum", "prod", "mean", "max", "min", "any", "all")},
    **dict.fromkeys(("concatenate", "concat", "hstack", "vstack"), "write cat([x, y], axis)"),
    **dict.fromkeys(("input", "parameter", "constant", "symbol", "output"), "it is a method of Builder"),
    **dict.fromkeys(("dot", "mm", "bmm", "linear", "dense"), "write x @ y, or matmul(x, y)"),
    "abs": "write absolute(x), or abs(x)",
    "pow": "write power(x, y), or x ** y",
    "round": "write rint(x), or round(x)",
    "isnan": "write is_nan(x)",
    "select": "write where(condition, x, y)",
    "swapaxes": "write transpose(x, first, second)",
    "expand_dims": "write unsqueeze(x, axis)",
    "broadcast_to": "write expand(x, shape)",
    "ravel": "write flatten(x)",
    "slice": "write x[begin:end]",
    "astype": "write cast(x, dtype)",
    "tensor": "write builder.constant(values), or builder.input(dtype, shape)",
    "array": "write builder.constant(values), or builder.input(dtype, shape)",
    "placeholder": "write builder.input(dtype, shape)",
}
"""Names that this package lacks, with advice."""


def no_such(owner: str, name: str, known: Iterable[str], others: Mapping[str, str]) -> str:
    """The message for a name that `owner` lacks, with its replacement or the most similar name."""
    meant = others.get(name)
    if meant is not None:
        return f"{owner} has no {quoted(name)}: {meant}"
    names = [each for each in known if not each.startswith("_")]
    meant = nearest(name, names)
    return f"{owner} has no {quoted(name)}" + (f"; did you mean {meant}?" if meant else "")
