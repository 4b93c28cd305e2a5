"""Checks of an operator's inputs, number and types, against ONNX's schema."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from onnx import TensorProto, defs
from onnx.helper import np_dtype_to_tensor_dtype

from ...build import Tensor
from ...expr import Expr
from .contributed.arity import ARITY
from .node import Node
from .value import Held, Items, Nothing


@dataclass(frozen=True, slots=True)
class _Input:
    """An input by the schema. Inputs with the same non-empty `parameter` must have the same type, one of `types`."""

    parameter: str
    types: frozenset[str]
    is_required: bool
    repeats: bool


def check_inputs(node: Node) -> None:
    """InvalidGraphError for a wrong number of inputs or a wrong type; UnsupportedGraphError outside the opset."""
    formal = _inputs(node.op, node.opset, node.domain)
    if formal is None and (node.domain, node.op) in ARITY:
        _check_count(node, *ARITY[node.domain, node.op])
        return
    if formal is None:
        node.fail(f"opset {node.opset} does not have this operator")
    if formal and formal[-1].repeats:
        formal = [*formal, *[formal[-1]] * (len(node.inputs) - len(formal))]
    if any(value is not None for value in node.inputs[len(formal) :]):
        node.invalid(f"{len(node.inputs)} inputs are given, at most {len(formal)} are taken")
    bound: dict[str, str] = {}
    for place, wanted in enumerate(formal):
        if node.has(place):
            found = _type_of(node.held(place))
            if found is None:
                continue
            if found not in wanted.types and f"optional({found})" not in wanted.types:
                later = _first_opset(node, place, found)
                hint = f"; opset {later} takes it, so export the model for that" if later else ""
                node.invalid(f"input {place} is a {found}; taken are {', '.join(sorted(wanted.types))}{hint}")
            if wanted.parameter and bound.setdefault(wanted.parameter, found) != found:
                node.invalid(f"input {place} is a {found} beside a {bound[wanted.parameter]}; cast one of them")
        elif wanted.is_required:
            node.invalid(f"input {place} is missing")


def _first_opset(node: Node, place: int, kind: str) -> int | None:
    """The first later opset of ONNX in which the operator's input takes this type."""
    if node.domain:
        return None
    for opset in range(node.opset + 1, defs.onnx_opset_version() + 1):
        formal = _inputs(node.op, opset, node.domain) or []
        if formal and kind in formal[min(place, len(formal) - 1)].types:
            return opset
    return None


def _check_count(node: Node, least: int, most: int) -> None:
    """InvalidGraphError for a wrong number of inputs of an operator without a schema."""
    if not least <= len(node.inputs) <= most:
        node.invalid(f"{len(node.inputs)} inputs are given, {least} to {most} are taken")


@cache
def _inputs(op: str, opset: int, domain: str) -> list[_Input] | None:
    if not defs.has(op, opset, domain):
        return None
    option, schema = defs.OpSchema.FormalParameterOption, defs.get_schema(op, opset, domain)
    return [
        _Input(
            # Inputs of one formal parameter have one type, unless it is heterogeneous.
            each.type_str if each.is_homogeneous else "",
            frozenset(each.types),
            each.option != option.Optional and place < schema.min_input,
            each.option == option.Variadic,
        )
        for place, each in enumerate(schema.inputs)
    ]


def _type_of(value: Held) -> str | None:
    """ONNX's name of a value's type. An object array holds dimensions, which are int64, or strings.

    None for an absent optional value and for an empty sequence, which may be of any type.
    """
    if isinstance(value, Nothing):
        return None
    if isinstance(value, Items):
        return f"seq({_type_of(value.values[0])})" if value.values else None
    if isinstance(value, Tensor):
        dtype = value.dtype.numpy
    elif value.dtype != object:
        dtype = value.dtype
    else:
        is_dims = all(isinstance(item, int | Expr) for item in value.reshape(-1).tolist())
        return "tensor(int64)" if is_dims else "tensor(string)"
    return f"tensor({TensorProto.DataType.Name(np_dtype_to_tensor_dtype(dtype)).lower()})"
