"""Operators defined as functions, with a body from the model or from ONNX's schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, TensorProto, TypeProto, defs
from onnx.helper import np_dtype_to_tensor_dtype

from ...build import Tensor
from ...errors import InvalidGraphError
from .value import Held, Items, Nothing

MAX_DEPTH = 64
"""The most nested function calls, since a recursive body would never end."""
_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Body:
    """The nodes of a function, the opsets they are written in, and the names of its inputs and outputs.

    `known` are the attributes that a call may have, `attributes` their defaults.
    """

    nodes: Sequence[NodeProto]
    opsets: Mapping[str, int]
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Mapping[str, AttributeProto]
    known: frozenset[str]


class Functions:
    """The functions of a model, and those of ONNX's own operators."""

    def __init__(self, model: ModelProto) -> None:
        self._own: dict[_Key, FunctionProto] = {
            (function.domain, function.name, function.overload): function for function in model.functions
        }

    def __contains__(self, node: NodeProto) -> bool:
        """Whether the model itself defines the node's operator."""
        return _key(node) in self._own

    def body(self, node: NodeProto, opsets: Mapping[str, int], inputs: Sequence[Held | None]) -> Body | None:
        """The body of the node's operator, for these inputs; None when neither the model nor ONNX has one."""
        own = self._own.get(_key(node))
        if own is None:
            return _by_schema(node, opsets, inputs)
        return _body(own, opsets, {}, {*own.attribute, *(each.name for each in own.attribute_proto)})


def _key(node: NodeProto) -> _Key:
    return node.domain, node.op_type, node.overload


def _by_schema(node: NodeProto, opsets: Mapping[str, int], inputs: Sequence[Held | None]) -> Body | None:
    domain = "" if node.domain == "ai.onnx" else node.domain
    opset = opsets.get(domain, 1)
    if not defs.has(node.op_type, opset, domain):
        return None
    # Any: the package's type stubs lack most fields of a schema.
    schema: Any = defs.get_schema(node.op_type, opset, domain)
    function = FunctionProto()
    if schema.has_function:
        written = _newest(schema.function_opset_versions, opset)
        function.ParseFromString(schema.get_function_with_opset_version(written))
    elif schema.has_context_dependent_function:
        written = _newest(schema.context_dependent_function_opset_versions, opset)
        types = [_type_of(value).SerializeToString() for value in inputs]
        found = schema.get_context_dependent_function_with_opset_version(written, node.SerializeToString(), types)
        function.ParseFromString(found)
    else:
        return None
    if not function.node:
        return None
    defaults = {name: each.default_value for name, each in schema.attributes.items() if each.default_value.name}
    return _body(function, opsets, defaults, schema.attributes)


def _newest(versions: Sequence[int], opset: int) -> int:
    return max((version for version in versions if version <= opset), default=min(versions))


def _body(
    function: FunctionProto, opsets: Mapping[str, int], defaults: Mapping[str, AttributeProto], known: Iterable[str]
) -> Body:
    """A function's body. Domains that the function does not name keep the caller's versions."""
    own = {"" if entry.domain == "ai.onnx" else entry.domain: entry.version for entry in function.opset_import}
    attributes = {attribute.name: attribute for attribute in function.attribute_proto}
    defaults = {**defaults, **attributes}
    return Body(function.node, {**opsets, **own}, function.input, function.output, defaults, frozenset(known))


def _type_of(value: Held | None) -> TypeProto:
    """ONNX's type of a value; symbolic dimensions are left unset."""
    kind = TypeProto()
    if value is None or isinstance(value, Nothing):
        return kind
    if isinstance(value, Items):
        if value.values:
            kind.sequence_type.elem_type.CopyFrom(_type_of(value.values[0]))
        return kind
    if isinstance(value, Tensor):
        kind.tensor_type.elem_type = np_dtype_to_tensor_dtype(value.dtype.numpy)
    else:
        dtype = value.dtype
        is_dims = dtype.kind == "O"
        kind.tensor_type.elem_type = TensorProto.INT64 if is_dims else np_dtype_to_tensor_dtype(dtype)
    kind.tensor_type.shape.SetInParent()
    for dim in value.shape:
        entry = kind.tensor_type.shape.dim.add()
        if isinstance(dim, int):
            entry.dim_value = dim
    return kind


def bound(node: NodeProto, attributes: Mapping[str, AttributeProto]) -> NodeProto:
    """A node of a body with references to the call's attributes resolved; missing ones are omitted."""
    if not any(attribute.ref_attr_name for attribute in node.attribute):
        return node
    result = NodeProto()
    result.CopyFrom(node)
    del result.attribute[:]
    result.attribute.extend(_resolved(node, attributes))
    return result


def _resolved(node: NodeProto, attributes: Mapping[str, AttributeProto]) -> Iterator[AttributeProto]:
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            yield attribute
            continue
        given = attributes.get(attribute.ref_attr_name)
        if given is None:
            continue
        if attribute.type not in (AttributeProto.UNDEFINED, given.type):
            raise InvalidGraphError(
                f"{node.op_type} {node.name}: the attribute {attribute.name} refers to {given.name}, which is of "
                "another type"
            )
        renamed = AttributeProto()
        renamed.CopyFrom(given)
        renamed.name = attribute.name
        yield renamed
