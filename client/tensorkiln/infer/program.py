"""Sink, multi, custom, and kernel, which wraps any other."""

from __future__ import annotations

from ..custom import CustomOpError, registered
from ..dtypes import DType
from ..limits import MAX_KERNEL_DEPTH
from ..nodes import AnyNode, Buffer, Custom, DefineVar, Kernel, Multi, Placeholder, Sink, While
from ..types import TensorType
from .movement import joined, operand
from .scope import Scope


def sink(node: Sink, scope: Scope) -> TensorType:
    if node.dtype is not DType.UNIT:
        scope.fail(f"a sink is unit, but the node says {node.dtype}", "dtype")
    for var in node.deps:
        _ = scope.types[var]
    return scope.type(DType.UNIT, ())


def multi(node: Multi, scope: Scope) -> TensorType:
    if not node.device_vars:
        scope.fail("multi takes at least one input", "device_vars")
    parts = [operand(scope, var, "device_vars") for var in node.device_vars]
    scope.require_dtype(node.dtype, parts[0].dtype)
    if node.axis is None:
        for part in parts[1:]:
            if part.dtype is not parts[0].dtype:
                scope.fail(f"the replicas have different dtypes: {parts[0].dtype} and {part.dtype}", "device_vars")
            scope.require_same_shape(parts[0].shape, part.shape, "the replicas have different shapes", "device_vars")
        return parts[0]
    scope.require_axis(node.axis, parts[0].rank, "axis")
    if len(node.real_mask) != len(parts):
        scope.fail(f"real_mask has {len(node.real_mask)} flags for {len(parts)} shards", "real_mask")
    real = [part for part, is_real in zip(parts, node.real_mask, strict=True) if is_real]
    if not real:
        scope.fail("real_mask marks no shard", "real_mask")
    if any(part.dtype is not node.dtype or part.rank != parts[0].rank for part in parts):
        scope.fail("the shards have one dtype and one rank", "device_vars")
    return joined(scope, real, node.axis, "device_vars")


def custom(node: Custom, scope: Scope) -> TensorType:
    known = registered()
    if node.op_name not in known:
        scope.unsupported(
            f"there is no custom operation {node.op_name}; registered: {', '.join(sorted(known))}", "op_name"
        )
    for attribute in node.attributes:
        for dim in attribute.value if isinstance(attribute.value, tuple) else ():
            scope.bounds(dim)
    inputs = [scope.types[var] for var in node.in_vars]
    try:
        result = known[node.op_name].infer(inputs, node.attributes)
    except CustomOpError as error:
        scope.fail(str(error), "attributes")
    scope.require_dtype(node.dtype, result.dtype)
    return scope.type(result.dtype, result.shape)


def check_kernel(node: Kernel, scope: Scope, depth: int) -> None:
    """Refuses a kernel whose vars do not match those of its `ast`."""
    if depth > MAX_KERNEL_DEPTH:
        scope.over("kernel_depth", MAX_KERNEL_DEPTH, depth)
    inner: AnyNode = node.ast
    if isinstance(inner, Placeholder | Buffer | DefineVar):
        scope.fail(f"a {inner.node} declares something of the graph and cannot be inside of a kernel", "ast")
    if isinstance(inner, While):
        scope.unsupported("a loop has kernels of its own and cannot be inside of one", "ast")
    if node.input_vars != inner.operands:
        scope.fail(f"input_vars are the operands of ast in field order: {list(inner.operands)}", "input_vars")
    if not node.output_vars or node.output_vars[0] != node.out_var:
        scope.fail(f"the first of output_vars is out_var, {node.out_var}", "output_vars")
    if isinstance(inner, Sink):
        if len(node.output_vars) != len(inner.deps):
            scope.fail("a kernel of a sink has one output for each dependency", "output_vars")
    elif node.output_vars != (inner.out_var,):
        scope.fail(f"output_vars has to be the out_var of ast only: [{inner.out_var}]", "output_vars")


RULES = {Sink: sink, Multi: multi, Custom: custom}
