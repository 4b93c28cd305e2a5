"""A graph that means what a module of the dialect says, op by op, so that the reference can evaluate the module."""

from __future__ import annotations

import math
from itertools import zip_longest
from typing import Any

from dialect.kiln import (
    AssignOp,
    BitcastOp,
    CastOp,
    ConstScalarOp,
    ContractOp,
    CustomOp,
    DefineVarOp,
    ExpandOp,
    KilnOp,
    MultiOp,
    NoopOp,
    ReshapeOp,
    ScatterOp,
    SinkOp,
    VconstOp,
    WhileOp,
)
from dialect.loops import WhileResultOp
from dialect.mlir import func, ir
from dialect.module import graph_function, symbols
from dialect.operation import MixedOperandsOp
from dialect.types import type_of
from tensorkiln.expr import to_wire
from tensorkiln.graph import Graph
from tensorkiln.types import TensorType

OPERANDS = {
    "binop": ("a_var", "b_var"),
    "ternary": ("a_var", "b_var", "c_var"),
    "wmma": ("a_var", "b_var", "c_var"),
    "index": ("in_var", "idx_var", "valid_var"),
    "gather": ("src_var", "indices_var"),
    "scatter": ("indices_var", "updates_var", "init_var"),
    "threefry": ("ctr_var", "key_var"),
    "unroll": ("loop_var",),
    "buffer_view": ("buffer_var",),
    "bind": ("sym_var",),
}
"""The fields that hold a node's operands, where it is not `in_var` alone."""


def module_to_graph(module: ir.Module) -> Graph:
    reading = _Reading()
    (block,) = graph_function(module).regions[0].blocks
    inputs = [reading.new_var(argument) for argument in block.arguments]
    for var in inputs:
        reading.nodes.append({"node": "placeholder", "out_var": var, **_spelled(reading.types[var])})
    outputs: list[int] = []
    for op in block.operations:
        if isinstance(op, func.ReturnOp):
            outputs = reading.vars_of(op)
        else:
            reading.read(op)
    return Graph.model_validate(
        {
            "schema": 1,
            "nodes": reading.nodes,
            "vars_metadata": {var: _spelled(tensor) for var, tensor in enumerate(reading.types)},
            "input_vars": inputs,
            "output_vars": outputs,
            "symbolic_vars": [symbol.model_dump() for symbol in symbols(module) if symbol.name not in reading.defined],
        }
    )


class _Reading:
    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.types: list[TensorType] = []
        self.defined: set[str] = set()
        self._vars: dict[ir.Value, int] = {}

    def new_var(self, value: ir.Value) -> int:
        self._vars[value] = len(self.types)
        self.types.append(type_of(value))
        return self._vars[value]

    def vars_of(self, op: ir.OpView) -> list[int]:
        return [self._vars[value] for value in op.operands]

    def read(self, op: KilnOp) -> None:
        if isinstance(op, SinkOp):
            self.nodes.append({"node": "sink", "deps": self.vars_of(op), "dtype": "unit"})
            return
        if isinstance(op, AssignOp):
            self._read_assign(op)
            return
        if isinstance(op, WhileOp):
            regions = {"condition": op.condition.model_dump(), "body": op.body.model_dump()}
            self.nodes.append({"node": "while", **regions, "in_vars": self.vars_of(op), "output_vars": []})
            self.nodes[-1]["most"] = op.most
            return
        if isinstance(op, WhileResultOp):
            self.nodes[-1]["output_vars"].append(self.new_var(op.results[0]))
            return
        if isinstance(op, DefineVarOp):
            self.defined.add(op.sym_var.name)
        node = {"node": _kind(op), **_fields_of(op), **_operands_of(op, self.vars_of(op))}
        node.update(out_var=self.new_var(op.results[0]), dtype=op.tensor.dtype.value)
        if node["node"] == "kernel":
            node = {"node": "contiguous", **{key: node[key] for key in ("in_var", "out_var", "dtype")}}
        self.nodes.append(node)

    def _read_assign(self, op: AssignOp) -> None:
        """An assign writes to its target on the wire, and leaves its operand be in the dialect: assign to a copy."""
        target, source = self.vars_of(op)
        copy, result = self.new_var(op.results[0]), self.new_var(op.results[0])
        dtype = op.tensor.dtype.value
        self.nodes.append({"node": "contiguous", "in_var": target, "out_var": copy, "dtype": dtype})
        updates = [[source, copy, op.range]]
        self.nodes.append({"node": "assign", "target_var": copy, "updates": updates, "out_var": result, "dtype": dtype})


def _spelled(tensor: TensorType) -> dict[str, Any]:
    return {"dtype": tensor.dtype.value, "shape": [to_wire(dim) for dim in tensor.shape]}


def _operands_of(op: KilnOp, operands: list[int]) -> dict[str, Any]:
    if isinstance(op, MultiOp):
        return {"device_vars": operands}
    if isinstance(op, MixedOperandsOp | ContractOp):
        return {"in_vars": operands}
    names = OPERANDS.get(_kind(op), ("in_var",) if operands or isinstance(op, NoopOp) else ())
    return dict(zip_longest(names, operands))


def _fields_of(op: KilnOp) -> dict[str, Any]:
    if isinstance(op, ConstScalarOp):
        return {"value": _literal(op.value)}
    if isinstance(op, VconstOp):
        return {"values": [_literal(value) for value in op.array.ravel().tolist()]}
    if isinstance(op, CustomOp):
        return {"op_name": op.op_name, "attributes": op.custom_attributes}
    fields: dict[str, Any] = {member: getattr(op, member) for member in op.fields}
    shape = _spelled(op.tensor)["shape"]
    if isinstance(op, CastOp | BitcastOp):
        fields["target_dtype"] = op.tensor.dtype.value
    if isinstance(op, ReshapeOp | ExpandOp | ScatterOp):
        fields[{"reshape": "new_shape", "expand": "new_target_shape"}.get(_kind(op), "shape")] = shape
    return fields


def _kind(op: KilnOp) -> str:
    return op.OPERATION_NAME.removeprefix("kiln.")


def _literal(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
