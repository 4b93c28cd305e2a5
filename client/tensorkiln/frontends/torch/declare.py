"""Declaration of a program's inputs in the graph: inputs of each call, and parameters that are bound once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ...build import Builder, Tensor
from ...dtypes import DType
from ...errors import InvalidGraphError, UnsupportedGraphError
from ...expr import Expr
from ..composed.complex_numbers import from_pairs
from .call import Value
from .exported import COMPLEX_PARTS, Array, Exported, Input, Role, TensorType
from .naming import distinct

KEY: Final = "random_key"
"""The input of a program that draws random numbers."""


@dataclass
class Declared:
    """The declared inputs: `values` by torch's names, `inputs` of each call by name, `arrays` of parameters by var.

    `state` are the initial values of changed buffers by input name; `buffers` maps their targets to input names.
    """

    values: dict[str, Value] = field(default_factory=dict[str, Value])
    inputs: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    arrays: dict[int, Array] = field(default_factory=dict[int, Array])
    state: dict[str, Array] = field(default_factory=dict[str, Array])
    buffers: dict[str, str] = field(default_factory=dict[str, str])


def declare_inputs(builder: Builder, exported: Exported) -> Declared:
    """Declare the arguments, then the changed buffers. UnsupportedGraphError for an unsupported element type."""
    declared = Declared()
    changed = {output.mutates for output in exported.outputs if output.role is not Role.USER}
    for entry in exported.inputs:
        if entry.role is Role.USER:
            _declare_argument(builder, exported, entry, declared)
    for entry in exported.inputs:
        if entry.role is not Role.USER and entry.target in changed:
            array = _array(exported, entry)
            name = distinct([*declared.inputs, entry.target])[-1]
            tensor = builder.input(_type(exported, entry).dtype or DType.FLOAT32, array.shape, _checked(name))
            declared.values[entry.name] = declared.inputs[name] = tensor
            declared.state[name] = array
            declared.buffers[entry.target] = name
    return declared


def declare_parameters(builder: Builder, exported: Exported, declared: Declared) -> None:
    """Declare weights, buffers and constants that are read as parameters; an array with several names becomes one."""
    read = set(exported.references())
    shared: dict[int, Tensor] = {}
    for entry in exported.inputs:
        if entry.role is Role.USER or entry.name in declared.values or entry.name not in read:
            continue
        array = _array(exported, entry)
        known = _type(exported, entry)
        if id(array) not in shared:
            name = f"parameters/{len(shared)}/{entry.target}"
            shared[id(array)] = builder.parameter(known.dtype or DType.FLOAT32, array.shape, name)
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
    make = builder.parameter if entry.is_weight else builder.input
    if isinstance(known, TensorType) and known.is_complex and exported.complex_as_pairs:
        tensor = make(COMPLEX_PARTS[known.spelled], [*known.shape, 2], _checked(entry.name))
        declared.inputs[entry.name] = tensor
        declared.values[entry.name] = from_pairs(tensor)
        return
    known = _type(exported, entry)
    tensor = make(known.dtype or DType.FLOAT32, known.shape, _checked(entry.name))
    declared.values[entry.name] = declared.inputs[entry.name] = tensor


def _checked(name: str) -> str:
    if name == KEY:
        raise UnsupportedGraphError(
            f"an input is called {KEY!r}, as the key of random numbers is: give it another name"
        )
    return name


def _type(exported: Exported, entry: Input) -> TensorType:
    known = exported.types.get(entry.name)
    if not isinstance(known, TensorType):
        raise UnsupportedGraphError(f"the input {entry.name!r} is not a tensor")
    if known.dtype is None:
        advice = ": give it as torch.view_as_real, and take torch.view_as_complex of that" * known.is_complex
        raise UnsupportedGraphError(f"the input {entry.name!r} is of {known.spelled}, which is not supported{advice}")
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
