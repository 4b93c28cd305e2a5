"""Nodes about other nodes, and the union of all 45."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Field, SerializeAsAny

from ..dtypes import DType
from ..limits import MAX_NODES, MOST_TURNS
from .base import Record
from .constants import ConstScalar, Vconst
from .conversion import Bitcast, Cast
from .custom import Custom
from .elementwise import Binop, Ternary, Unary
from .fields import Flag, Integer, Name, Natural, Var, Vars
from .indexing import Gather, Gep, Index, Scatter, Valid, Vectorize
from .markers import ContiguousBackward, Detach, Device, Fuse, Noop, Unique, Unroll
from .memory import Assign, Buffer, BufferView, Contiguous, Copy, Placeholder
from .metadata import VarKey, VarMetadata
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


class Region(Record):
    """A graph inside of a node: its vars are its own, its symbols those of the graph around it."""

    nodes: Annotated[tuple[Node, ...], Field(max_length=MAX_NODES)]
    vars_metadata: dict[Annotated[int, VarKey], VarMetadata] = Field(default_factory=dict)
    input_vars: Vars
    output_vars: Vars


class While(Record):
    """Turns of `body` as long as `condition` gives true; what each gives replaces the first inputs of the next.

    Both graphs take values like `in_vars`. The condition gives one bool; the body gives one value for each of
    `output_vars`, like the `in_vars` in the same places; the other `in_vars` are the same in every turn. `output_vars`
    are what the last turn gave, or the first of `in_vars` when there is none. A turn beyond `most` is an error.
    """

    node: Literal["while"] = "while"
    condition: Region
    body: Region
    in_vars: Vars
    output_vars: Annotated[Vars, Field(min_length=1)]
    most: Annotated[int, Field(strict=True, ge=1, le=MOST_TURNS)]

    @property
    def operands(self) -> tuple[int, ...]:
        return self.in_vars

    @property
    def out_var(self) -> int:
        return self.output_vars[0]


AnyNode: TypeAlias = (
    Buffer | BufferView | Placeholder | ConstScalar | Vconst | Binop | Unary | Ternary | View | Reshape | Permute
    | Expand | Pad | Shrink | Flip | ReduceAxis | Valid | Index | Gep | Vectorize | Wmma | Cast | Bitcast | Contiguous
    | Copy | Assign | DefineVar | Bind | Detach | ContiguousBackward | Sink | Kernel | Unique | Device | Multi | Fuse
    | Unroll | Contract | Cat | Threefry | Gather | Scatter | Custom | Noop | While
)  # fmt: skip

# SerializeAsAny: a node serializes by its own class; a second look-up of its kind would double the time.
Node: TypeAlias = SerializeAsAny[Annotated[AnyNode, Field(discriminator="node")]]
"""Any node; the field `node` says which."""

Kernel.model_rebuild()
Region.model_rebuild()
While.model_rebuild()


NODE_KINDS: dict[str, type[AnyNode]] = {model.model_fields["node"].default: model for model in get_args(AnyNode)}
"""The model of each kind by its name on the wire."""


def out_vars(node: AnyNode) -> tuple[int, ...]:
    """Every var that `node` defines: `output_vars` of a kernel or a loop, nothing for a sink, else its `out_var`."""
    if isinstance(node, _OF_SEVERAL):
        return node.output_vars
    var = node.out_var
    return () if var is None else (var,)


_OF_SEVERAL = (Kernel, While)
