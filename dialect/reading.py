"""Read each kind of node into a body. Most become the op of their name; the others have a function here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.nodes import (
    NODE_KINDS,
    AnyNode,
    Assign,
    Buffer,
    BufferView,
    Cat,
    Custom,
    Kernel,
    Multi,
    Placeholder,
    Sink,
    Vectorize,
    While,
)

from .body import Body
from .custom import CustomOp
from .indexing import VectorizeOp
from .joining import join
from .kiln import OPS
from .locations import node_pointer
from .loops import TURNS, WhileOp, WhileResultOp
from .memory import AssignOp
from .mlir import ir
from .operation import MAX_RUNS, KilnOp, runs_of_equal_type
from .program import KernelOp, MultiOp, SinkOp


def read_node(node: AnyNode, body: Body) -> None:
    """Append the ops of a node, and give its vars their values."""
    special = _SPECIAL.get(type(node))
    if special is not None:
        special(node, body)
        return
    op, members = _PLAIN[type(node)]
    out_var: Any = node.out_var
    body.write(op, body.read_all(node.operands), out_var, {member: getattr(node, member) for member in members})


def _read_placeholder(node: Placeholder, body: Body) -> None:
    """Nothing to do: the var is an argument already."""


def _read_buffer(node: Buffer, body: Body) -> None:
    body.declare_buffer(node)


def _read_buffer_view(node: BufferView, body: Body) -> None:
    body.declare_view(node)


def _read_assign(node: Assign, body: Body) -> None:
    for source, _, span in node.updates:
        operands = body.read_all((node.target_var, source))
        body.write(AssignOp, operands, node.target_var, {"range": span})
    if node.out_var != node.target_var:
        body.define(node.out_var, body.read(node.target_var))


def _read_sink(node: Sink, body: Body) -> None:
    runs = runs_of_equal_type(body.read_all(node.deps))
    for first in range(0, max(len(runs), 1), MAX_RUNS):
        body.writer.write(SinkOp, list(chain.from_iterable(runs[first : first + MAX_RUNS])), None)


def _read_kernel(node: Kernel, body: Body) -> None:
    if isinstance(node.ast, Sink):
        values = body.read_all(node.ast.deps)
    else:
        read_node(node.ast, body)
        if body.is_view(node.out_var):
            return
        values = body.read_all(node.output_vars)
    for var, value in zip(node.output_vars, values, strict=True):
        body.write(KernelOp, (value,), var, {"metadata": node.metadata})


def _read_cat(node: Cat, body: Body) -> None:
    result = body.types[node.out_var]
    body.define(node.out_var, join(body.writer, body.read_all(node.in_vars), node.axis % result.rank, result))


def _read_multi(node: Multi, body: Body) -> None:
    values = body.read_all(node.device_vars)
    if len(runs_of_equal_type(values)) <= MAX_RUNS:
        body.write(MultiOp, values, node.out_var, {"axis": node.axis, "real_mask": node.real_mask})
    elif node.axis is None:
        body.write(MultiOp, values[:1], node.out_var, {"axis": None, "real_mask": node.real_mask[:1]})
    else:
        real = [value for value, is_real in zip(values, node.real_mask, strict=True) if is_real]
        body.define(node.out_var, join(body.writer, real, node.axis, body.types[node.out_var]))


def _read_vectorize(node: Vectorize, body: Body) -> None:
    body.write(VectorizeOp, _values_of_few_types(node, body), node.out_var)


def _read_custom(node: Custom, body: Body) -> None:
    fields = {"op_name": node.op_name, "custom_attributes": node.attributes}
    body.write(CustomOp, _values_of_few_types(node, body), node.out_var, fields)


def _read_while(node: While, body: Body) -> None:
    fields = {"condition": node.condition, "body": node.body, "most": node.most}
    over = body.writer.write(WhileOp, _values_of_few_types(node, body), TURNS, fields)
    for number, var in enumerate(node.output_vars):
        body.write(WhileResultOp, (over,), var, {"number": number})


def _values_of_few_types(node: Vectorize | Custom | While, body: Body) -> Sequence[ir.Value]:
    values = body.read_all(node.in_vars)
    runs = len(runs_of_equal_type(values))
    if runs > MAX_RUNS:
        raise UnsupportedGraphError(
            f"the inputs of a {node.node} node change their type at most {MAX_RUNS - 1} times from one to the next, "
            f"here {runs - 1} times; put inputs of equal type next to each other",
            pointers=[f"{node_pointer(body.index)}/in_vars"],
        )
    return values


_SPECIAL: dict[type[AnyNode], Callable[[Any, Body], None]] = {
    Placeholder: _read_placeholder,
    Buffer: _read_buffer,
    BufferView: _read_buffer_view,
    Assign: _read_assign,
    Sink: _read_sink,
    Kernel: _read_kernel,
    Cat: _read_cat,
    Multi: _read_multi,
    Vectorize: _read_vectorize,
    Custom: _read_custom,
    While: _read_while,
}
# The fields of these ops have the names of the node's fields, and the operands are the node's.
_PLAIN: dict[type[AnyNode], tuple[type[KilnOp], tuple[str, ...]]] = {
    model: (OPS[kind], tuple(OPS[kind].fields)) for kind, model in NODE_KINDS.items() if model not in _SPECIAL
}
