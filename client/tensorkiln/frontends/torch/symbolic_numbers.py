"""Non-integer numbers computed from sizes, such as quotients and roots: float64 tensors of rank 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from ... import build
from ...build import Builder, Tensor
from ...dtypes import DType
from ...errors import UnsupportedGraphError
from ...expr import Expr
from .call import Value

Number: TypeAlias = "Callable[[Builder, Sequence[Value]], Value]"


def _computed(known: Callable[..., float], computed: Callable[..., Tensor]) -> Number:
    """A function that is evaluated at import for plain numbers, and in the graph for symbolic ones."""

    def apply(builder: Builder, arguments: Sequence[Value]) -> Value:
        if all(isinstance(each, int | float) for each in arguments):
            return known(*arguments)
        return computed(*(_wide(builder, each) for each in arguments))

    return apply


def _wide(builder: Builder, value: Value) -> Tensor:
    if isinstance(value, Tensor):
        return value.cast(DType.FLOAT64)
    if isinstance(value, Expr):
        return build.dim_value(builder, value, DType.FLOAT64)
    if isinstance(value, int | float):
        return builder.scalar(float(value), DType.FLOAT64)
    raise UnsupportedGraphError(f"{value!r} is not a number")


NUMBERS: Final[Mapping[str, Number]] = {
    "_operator.truediv": _computed(lambda a, b: a / b, lambda a, b: a / b),
    "_operator.add": _computed(lambda a, b: a + b, lambda a, b: a + b),
    "_operator.sub": _computed(lambda a, b: a - b, lambda a, b: a - b),
    "_operator.mul": _computed(lambda a, b: a * b, lambda a, b: a * b),
    "_operator.pow": _computed(lambda a, b: a**b, lambda a, b: a**b),
    "_operator.neg": _computed(lambda a: -a, lambda a: -a),
    "torch.sym_float": _computed(float, lambda a: a),
    "torch._sym_sqrt": _computed(math.sqrt, lambda a: a.sqrt()),
    "math.sqrt": _computed(math.sqrt, lambda a: a.sqrt()),
}
"""By the name of the function. Integer functions of integers are not needed: torch records their results."""
