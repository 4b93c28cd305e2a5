"""The inputs of a program as those of a graph: what is given at each call, and what is bound once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...build import Builder, Tensor
from ...errors import InvalidGraphError, UnsupportedGraphError
from ...expr import Expr
from .call import Value
from .exported import Array, Exported, Input, Role, TensorType


@dataclass
class Declared:
    """`values` by torch's names, `inputs` of each call by theirs, `arrays` of parameters by var, `state` at first."""

    values: dict[str, Value] = field(default_factory=dict[str, Value])
    inputs: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    arrays: dict[int, Array] = field(default_factory=dict[int, Array])
    state: dict[str, Array] = field(default_factory=dict[str, Array])


def declare_inputs(builder: Builder, exported: Exported) -> Declared:
    """The arguments, then the buffers that the program changes. UnsupportedGraphError for an element type we lack."""
    declared = Declared()
    changed = {output.mutates for output in exported.outputs if output.role is not Role.USER}
    for entry in exported.inputs:
        if entry.role is Role.USER:
            _declare_argument(builder, exported, entry, declared)
    for entry in exported.inputs:
        if entry.role is not Role.USER and entry.target in changed:
            array = _array(exported, entry)
            tensor = builder.input(_type(exported, entry).dtype or "float32", array.shape, entry.target)
            declared.values[entry.name] = declared.inputs[entry.target] = tensor
            declared.state[entry.target] = array
    return declared


def declare_parameters(builder: Builder, exported: Exported, declared: Declared) -> None:
    """Weights, buffers and constants that something reads, as inputs that are bound once; what is shared, as one."""
    read = set(exported.references())
    shared: dict[int, Tensor] = {}
    for entry in exported.inputs:
        if entry.role is Role.USER or entry.name in declared.values or entry.name not in read:
            continue
        array = _array(exported, entry)
        known = _type(exported, entry)
        if id(array) not in shared:
            shared[id(array)] = builder.parameter(known.dtype or "float32", array.shape, entry.target)
            declared.arrays[shared[id(array)].var] = array
        declared.values[entry.name] = shared[id(array)]


def _declare_argument(builder: Builder, exported: Exported, entry: Input, declared: Declared) -> None:
    if entry.name in exported.literals:
        literal = exported.literals[entry.name]
        declared.values[entry.name] = literal
        return
    known = exported.types.get(entry.name)
    if isinstance(known, int | Expr):
        declared.values[entry.name] = known
        return
    tensor = builder.input(_type(exported, entry).dtype or "float32", _type(exported, entry).shape, entry.name)
    declared.values[entry.name] = declared.inputs[entry.name] = tensor


def _type(exported: Exported, entry: Input) -> TensorType:
    known = exported.types.get(entry.name)
    if not isinstance(known, TensorType):
        raise UnsupportedGraphError(f"the input {entry.name!r} is no tensor")
    if known.dtype is None:
        raise UnsupportedGraphError(f"the input {entry.name!r} is of {known.spelled}, which is not supported")
    return known


def _array(exported: Exported, entry: Input) -> Array:
    if entry.target not in exported.arrays:
        raise InvalidGraphError(f"the archive has no values of {entry.target!r}")
    array, known = exported.arrays[entry.target], _type(exported, entry)
    if array.shape != known.shape or known.dtype is None or array.dtype != known.dtype.numpy:
        raise InvalidGraphError(
            f"{entry.target!r} is {array.dtype}{list(array.shape)}, and stated is {known.spelled}{list(known.shape)}"
        )
    return np.asarray(array)
