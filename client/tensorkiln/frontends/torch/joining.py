"""Concatenation and stacking."""

from __future__ import annotations

from ... import build
from ...build import Tensor
from .call import Call, Operator


def _cat(call: Call) -> Tensor:
    """Concatenate, with operands cast to the result's type; skips empty rank-1 operands, a legacy rule of torch."""
    given = call.tensors("tensors")
    rank = len(call.result_shape())
    tensors = [x.cast(call.dtype) for x in given if x.shape != (0,) or rank == 1]
    if not tensors:
        return given[0].cast(call.dtype)
    axis = call.integer("dim", 0)
    return build.cat(tensors, axis % tensors[0].rank)


def _stack(call: Call) -> Tensor:
    tensors = [x.cast(call.dtype) for x in call.tensors("tensors")]
    return build.stack(tensors, call.integer("dim", 0) % (tensors[0].rank + 1))


OPERATORS: dict[str, Operator] = {"aten.cat.default": _cat, "aten.stack.default": _stack}
