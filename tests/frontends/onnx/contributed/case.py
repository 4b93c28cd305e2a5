"""A model of one operator of com.microsoft, with its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, ValueInfoProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
Dims = tuple[int | str, ...]


def normal(random: np.random.RandomState, *shape: int) -> Array:
    return random.standard_normal(shape).astype(np.float32)


def codes(random: np.random.RandomState, dtype: str, *shape: int) -> Array:
    """Any integers of the dtype."""
    limits = np.iinfo(dtype)
    return random.randint(limits.min, limits.max + 1, shape).astype(dtype)


@dataclass(frozen=True)
class Case:
    """`operands` are names of inputs and weights, "" for one that is left out.

    `dims` gives inputs dims with names, which are dynamic. `unspecified` are elements of outputs that are not compared.
    """

    name: str
    op: str
    operands: str
    inputs: Mapping[str, Array]
    weights: Mapping[str, Array] = field(default_factory=dict[str, Array])
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    dims: Mapping[str, Dims] = field(default_factory=dict[str, Dims])
    outputs: Sequence[str] = ("y",)
    domain: str = "com.microsoft"
    opset: int = 21
    unspecified: Mapping[str, tuple[Any, ...]] = field(default_factory=dict[str, tuple[Any, ...]])

    def model(self) -> ModelProto:
        """The model, with dynamic dims where the case names them."""
        names = [name if name != "-" else "" for name in self.operands.split()]
        node = helper.make_node(self.op, names, list(self.outputs), "node", domain=self.domain, **self.attributes)
        inputs = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), self.dims.get(name, array.shape)
            )
            for name, array in self.inputs.items()
        ]
        results = [ValueInfoProto(name=name) for name in self.outputs if name]
        weights = [numpy_helper.from_array(array, name) for name, array in self.weights.items()]
        graph = helper.make_graph([node], self.name, inputs, results, weights)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def symbols(self) -> dict[str, int]:
        """The size of each dynamic dim."""
        found: dict[str, int] = {}
        for name, dims in self.dims.items():
            found |= {
                dim: size for dim, size in zip(dims, self.inputs[name].shape, strict=True) if isinstance(dim, str)
            }
        return found
