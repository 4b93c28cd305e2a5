"""Conversion of FX graphs, whose nodes call ATen operators, to programs. Imports torch when a graph is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

from ...errors import UnsupportedGraphError
from ...expr import Dim
from .element_types import dtype_named
from .exported import CHECK, Argument, Operation, Ref, TensorType, ValueType
from .lines import user_line
from .sizes import is_dense, size

_PLAIN: Final = (bool, int, float, complex, str)


def operations_of(nodes: Iterable[Any]) -> tuple[tuple[Operation, ...], dict[str, ValueType]]:
    """The operator calls among the nodes of a graph, and the types of all values by name.

    Each part of a tuple result has a name of its own; nodes that select a part are not operations.
    UnsupportedGraphError for nodes of other kinds.
    """
    operations: list[Operation] = []
    types: dict[str, ValueType] = {}
    names: dict[str, str] = {}
    for node in nodes:
        if node.op == "placeholder":
            types.update(_typed(node.name, node.meta.get("val")))
        elif _is_check(node):
            continue
        elif node.op == "call_function" and _is_pick(node):
            names[node.name] = _picked(node)
            types.update(_typed(names[node.name], node.meta.get("val")))
        elif node.op == "call_function":
            operations.append(_operation(node, names))
            if not isinstance(node.meta.get("val"), list | tuple):
                types.update(_typed(node.name, node.meta.get("val")))
        elif node.op == "get_attr":
            types.update(_typed(node.name, attribute(node)))
        elif node.op != "output":
            raise UnsupportedGraphError(f"the node {node.name!r} is a {node.op}, which is not supported")
    return tuple(operations), types


def output_of(nodes: Iterable[Any]) -> Sequence[Argument]:
    """The outputs of a graph, flat and in order."""
    listed = list(nodes)
    names = {node.name: _picked(node) for node in listed if _is_pick(node)}
    (output,) = (node for node in listed if node.op == "output")
    found = output.args[0]
    return [argument(each, names) for each in (found if isinstance(found, list | tuple) else (found,))]


def attribute(node: Any) -> Any:
    """The attribute of the owning module that a node reads: a constant tensor, or a subgraph that an operator runs."""
    return reduce(getattr, node.target.split("."), node.graph.owning_module)


def _is_check(node: Any) -> bool:
    """Whether it raises torch's error for a matrix without a factor, in the order that a token gives."""
    is_ordered = node.op == "call_function" and str(node.target) == "with_effects"
    return is_ordered and str(node.args[1]) == CHECK


def _is_pick(node: Any) -> bool:
    return node.op == "call_function" and getattr(node.target, "__name__", "") == "getitem"


def _picked(node: Any) -> str:
    """The name of the part that a node selects; a check, which is not made, passes its token on."""
    source, place = node.args
    if not _is_check(source):
        return f"{source.name}.{place}"
    token = source.args[0]
    return _picked(token) if _is_pick(token) else token.name


def _operation(node: Any, names: Mapping[str, str]) -> Operation:
    line = user_line(node.meta.get("stack_trace"))
    value = node.meta.get("val")
    results = (node.name,)
    if isinstance(value, list | tuple):
        read = {user.args[1] for user in node.users if _is_pick(user)}
        results = tuple(f"{node.name}.{place}" if place in read else "" for place in range(len(value)))
    elif value is None:
        results = ()
    target, formal = _target(node)
    given = dict(zip(formal, node.args, strict=False)) if formal else dict(enumerate(node.args))
    arguments = {str(name): argument(each, names) for name, each in (given | dict(node.kwargs)).items()}
    return Operation(node.name, target, arguments, results, line)


def _target(node: Any) -> tuple[str, list[str]]:
    """The operator's name and the names of its arguments; empty for a plain function."""
    schema = getattr(node.target, "_schema", None)
    if schema is not None:
        return str(node.target), [each.name for each in schema.arguments]
    module, name = getattr(node.target, "__module__", ""), getattr(node.target, "__name__", str(node.target))
    return f"{module}.{name}", []


def argument(value: Any, names: Mapping[str, str]) -> Argument:
    """Convert an argument of a node: values, numbers, lists and types; objects of other types become text."""
    import torch

    if isinstance(value, torch.fx.Node):
        return Ref(names.get(value.name, value.name))
    if isinstance(value, list | tuple):
        return tuple(argument(each, names) for each in value)
    if value is None or isinstance(value, _PLAIN):
        return value
    if isinstance(value, torch.dtype):
        return dtype_named(str(value)) or str(value)
    if isinstance(value, torch.memory_format) or value is torch.strided:
        return None
    if isinstance(value, torch.device | torch.layout):
        return str(value)
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return str(value)
    return f"{type(value).__name__} {value!s}"


def _typed(name: str, value: Any) -> dict[str, ValueType]:
    import torch

    if isinstance(value, torch.Tensor):
        spelled = str(value.dtype).removeprefix("torch.")
        shape = tuple(size_of(each) for each in value.shape)
        return {name: TensorType(dtype_named(spelled), shape, spelled, value.device.type, _is_dense(value, shape))}
    if isinstance(value, torch.SymInt) or (isinstance(value, int) and not isinstance(value, bool)):
        return {name: size_of(value)}
    return {}


def _is_dense(value: Any, shape: Sequence[Dim]) -> bool:
    import torch

    if value.layout is not torch.strided:
        return False
    try:
        return is_dense(shape, [size_of(each) for each in value.stride()], size_of(value.storage_offset()))
    except UnsupportedGraphError:
        # Strides that are not polynomials of sizes.
        return False


def size_of(value: Any) -> Dim:
    """Convert one of torch's sizes: an integer, or a symbolic one with a SymPy expression."""
    if isinstance(value, int):
        return value
    import sympy

    expression = value.node.expr
    if expression.is_Integer:
        return int(expression)
    return size(sympy.srepr(expression))
