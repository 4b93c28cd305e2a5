"""Conversions, and operations that do not change the value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...build import Tensor
from ...dtypes import DType
from ...errors import UnsupportedGraphError
from .element_types import dtype_of, is_open, named, widened
from .node import Asked, Node, Operation, the_first


def _converted(uop: Any, dtype: DType) -> Sequence[Asked]:
    source = uop.src[0]
    if not is_open(source):
        return [(source, dtype_of(source))]
    if source.op.name == "CONST":
        return [(source, dtype)]
    return [(source, widened(source, uop.dtype) if not is_open(uop) else dtype)]


def _own(uop: Any, dtype: DType) -> Sequence[Asked]:
    del dtype
    return [(uop.src[0], dtype_of(uop.src[0]))]


def _cast(node: Node) -> Tensor:
    return node.value.cast(node.dtype)


def _bitcast(node: Node) -> Tensor:
    return node.value.bitcast(named(node.uop.dtype))


def _same(node: Node) -> Tensor:
    return node.value


def _copied(node: Node) -> Tensor:
    """A copy to another device keeps the value; the program runs on the device that it is compiled for."""
    if not isinstance(node.uop.device, str):
        raise UnsupportedGraphError("values on several devices are not supported")
    return node.value


OPERATIONS: Final = {
    "CAST": Operation(_cast, _converted),
    "BITCAST": Operation(_bitcast, _own),
    "CONTIGUOUS": Operation(_same, the_first),
    "CONTIGUOUS_BACKWARD": Operation(_same, the_first),
    "DETACH": Operation(_same, the_first),
    "COPY": Operation(_copied, the_first),
}
