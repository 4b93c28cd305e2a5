"""Storage: buffers, views that share their bytes, and assignment in place.

These evaluators run for their effect on the scope; all others return a value that the scope copies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import CallInputError
from ..nodes import Assign, Buffer, BufferView, Placeholder
from .scope import Scope


def declare_placeholder(node: Placeholder, scope: Scope) -> None:
    """The call gave the var its value."""


def declare_buffer(node: Buffer, scope: Scope) -> None:
    """Zeros until written, unless the call gave the var its contents."""
    if not scope.has(node.out_var):
        scope.share(node.out_var, np.zeros(scope.shape(node.out_var), node.dtype.numpy))


def declare_buffer_view(node: BufferView, scope: Scope) -> None:
    """`size` elements of the view's dtype over the buffer's own bytes, from the buffer's element `offset` on.

    CallInputError when the bytes leave the buffer.
    """
    buffer = scope.storage(node.buffer_var).reshape(-1)
    shape = scope.shape(node.out_var)
    first = scope.dim(node.offset) * buffer.itemsize
    last = first + scope.dim(node.size) * node.dtype.itemsize
    if not 0 <= first <= last <= buffer.nbytes:
        raise CallInputError(
            f"the view covers bytes {first} to {last} of a buffer of {buffer.nbytes}", pointers=[scope.pointer]
        )
    if first == last:
        scope.share(node.out_var, np.zeros(shape, node.dtype.numpy))
        return
    scope.share(node.out_var, buffer.view(np.uint8)[first:last].view(node.dtype.numpy).reshape(shape))


def run_assign(node: Assign, scope: Scope) -> None:
    """Each update in order, the whole target or a flat range of it; `out_var` is what the target then holds."""
    target = scope.storage(node.target_var)
    for source_var, _, places in node.updates:
        source = scope.read(source_var)
        if places is None:
            target[...] = source
            continue
        begin, end = places
        target.reshape(-1)[begin:end] = source.reshape(-1)
    scope.define(node.out_var, scope.read(node.target_var))


EFFECTS: dict[type, Callable[[Any, Scope], None]] = {
    Placeholder: declare_placeholder,
    Buffer: declare_buffer,
    BufferView: declare_buffer_view,
    Assign: run_assign,
}
