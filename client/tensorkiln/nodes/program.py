"""Nodes about other nodes, and the union of all 44."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Field, SerializeAsAny

from ..dtypes import DType
from .base import Record
from .constants import ConstScalar, Vconst
from .conversion import Bitcast, Cast
from .custom import Custom
from .elementwise import Binop, Ternary, Unary
from .fields import Flag, Integer, Name, Natural, Var, Vars
from .indexing import Gather, Gep, Index, Scatter, Valid, Vectorize
from .markers import ContiguousBackward, Detach, Device, Fuse, Noop, Unique, Unroll
from .memory import Assign, Buffer, BufferView, Contiguous, Copy, Placeholder
from .movement import Cat, Expand, Flip, Pad, Permute, Reshape, Shrink, View
from .random import Threefry
from .reduction import Contract, ReduceAxis, Wmma
from .symbolic import Bind, DefineVar


class Sink(Record):
    """Keeps its dependencies; has no value."""

    node: Literal["sink"] = "sink"
    deps: Vars
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return self.deps

    @property
    def out_var(self) -> None:
        return None


class KernelMetadata(Record):
    """Scheduling hints of a kernel node."""

    name: Name
    local_dims: Natural
    upcasted: Natural
    dont_use_locals: Flag


class Kernel(Record):
    """One node wrapped as a kernel: the operands of `ast`, in field order, are `input_vars`.

    The kernel defines every var of `output_vars`: one, the `out_var` of `ast`; or, for a `sink`, the i-th is its i-th
    dependency. `out_var` is the first of them.
    """

    node: Literal["kernel"] = "kernel"
    ast: Node
    input_vars: Vars
    output_vars: Vars
    metadata: KernelMetadata
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return self.input_vars


class Multi(Record):
    """A tensor over devices: replicated (`axis` null), or the shards marked in `real_mask` joined along `axis`."""

    node: Literal["multi"] = "multi"
    device_vars: Vars
    axis: Integer | None = None
    real_mask: tuple[Flag, ...]
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return self.device_vars


AnyNode: TypeAlias = (
    Buffer | BufferView | Placeholder | ConstScalar | Vconst | Binop | Unary | Ternary | View | Reshape | Permute
    | Expand | Pad | Shrink | Flip | ReduceAxis | Valid | Index | Gep | Vectorize | Wmma | Cast | Bitcast | Contiguous
    | Copy | Assign | DefineVar | Bind | Detach | ContiguousBackward | Sink | Kernel | Unique | Device | Multi | Fuse
    | Unroll | Contract | Cat | Threefry | Gather | Scatter | Custom | Noop
)  # fmt: skip

# A node serializes as what it is: to look for its kind once more takes as long again.
Node: TypeAlias = SerializeAsAny[Annotated[AnyNode, Field(discriminator="node")]]
"""Any node; the field `node` says which."""

Kernel.model_rebuild()


NODE_KINDS: dict[str, type[AnyNode]] = {model.model_fields["node"].default: model for model in get_args(AnyNode)}
"""The model of each kind by its name on the wire."""


def out_vars(node: AnyNode) -> tuple[int, ...]:
    """Every var that `node` defines: all `output_vars` of a kernel, nothing for a sink, else its `out_var`."""
    if type(node) is Kernel:
        return node.output_vars
    var = node.out_var
    return () if var is None else (var,)
