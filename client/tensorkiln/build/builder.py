"""The graph builder: collects nodes and returns them as one validated graph."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from ..dtypes import DType
from ..errors import InvalidGraphError
from ..expr import Dim, Expr, ExprError, bounds, from_wire, symbol
from ..large_graph import LargeGraphWarning, said_of_large
from ..nearest import quoted
from .constant import scalar_value, table_values
from .element_type import DTypeLike, element_type
from .mistakes import OperandError, UnknownNameError
from .operands import require_tensor
from .other_names import no_such
from .shape import Shape, ShapeLike, dim_problem, shape_problem, wire
from .tensor import Tensor

if TYPE_CHECKING:
    from ..graph import Graph
    from .operands import Scalar

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,63}")
_NAMED = "a name is 1 to 64 letters, digits, _ or ., the first of them a letter or _"


class Builder:
    """Writes one graph: declare symbols and inputs, compose tensors, name the outputs, take the graph.

    Every mistake raises `InvalidGraphError` on the line that makes it; its pointer is the node that was to be next.
    """

    def __init__(self, name: str = "graph") -> None:
        if not _NAME.fullmatch(name):
            raise InvalidGraphError(f"the graph's name {quoted(name)} cannot be used: {_NAMED}", pointers=["/name"])
        self.name = name
        self._nodes: list[dict[str, Any]] = []
        self._tensors: list[Tensor] = []
        self._inputs: dict[str, Tensor] = {}
        self._parameters: list[Tensor] = []
        self._outputs: list[Tensor] = []
        self._symbols: dict[str, tuple[int, int]] = {}
        self._scalars: dict[tuple[DType, str], Tensor] = {}
        self._asked: dict[tuple[DType, str], Tensor] = {}
        self._values: dict[str, Tensor] = {}
        self.is_inside = False
        """Whether the graph is the region of a loop, whose inputs no caller passes."""

    @property
    def symbols(self) -> Mapping[str, tuple[int, int]]:
        """The declared symbols with their inclusive bounds."""
        return self._symbols

    @property
    def inputs(self) -> Mapping[str, Tensor]:
        """The inputs by name, in the order in which a program takes them."""
        return self._inputs

    @property
    def node_count(self) -> int:
        """The nodes written so far."""
        return len(self._nodes)

    def has_since(self, first: int, kind: str, **fields: object) -> bool:
        """Whether one of the nodes from number `first` on is of this kind and has these fields."""
        wanted = {"node": kind, **fields}
        return any(all(node.get(name) == value for name, value in wanted.items()) for node in self._nodes[first:])

    def symbol(self, name: str, minimum: int, maximum: int) -> Expr:
        """Declare a symbol with inclusive bounds; use the result in shapes and in arithmetic on dimensions."""
        if not _NAME.fullmatch(name):
            raise self.error(f"the symbol's name {quoted(name)} cannot be used: {_NAMED}")
        given = (minimum, maximum)
        if not all(isinstance(bound, int | np.integer) for bound in given):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers are users
            raise self.error(f"the bounds of the symbol {name} are integers, not {quoted(given)}")
        if self._symbols.setdefault(name, (minimum, maximum)) != (minimum, maximum):
            raise self.error(f"the symbol {name} is declared already, with the bounds {self._symbols[name]}")
        if minimum > maximum:
            raise self.error(
                f"symbol {name}: the minimum {minimum} is greater than the maximum {maximum}; give the smaller first"
            )
        return symbol(name)

    def input(self, dtype: DTypeLike, shape: ShapeLike = (), name: str | None = None) -> Tensor:
        """A graph input; a string in `shape` names a declared symbol. Inputs are passed in the order of these calls."""
        name = f"input{len(self._inputs)}" if name is None else name
        if name in self._inputs:
            raise self.error(f"there is an input called {name!r} already; give this one another name")
        kind = element_type(dtype, self.error)
        dims = self.shape(shape)
        tensor = self.append("placeholder", kind, dims, shape=wire(dims))
        self._inputs[name] = tensor
        return tensor

    def parameter(self, dtype: DTypeLike, shape: ShapeLike = (), name: str | None = None) -> Tensor:
        """A graph input, as by `input`, that callers bind once; values that depend only on parameters are prepared."""
        tensor = self.input(dtype, shape, name)
        self._parameters.append(tensor)
        return tensor

    def constant(self, value: Scalar | np.ndarray[Any, Any] | Sequence[Any], dtype: DTypeLike | None = None) -> Tensor:
        """A constant: a scalar of rank 0, or a small table.

        Without `dtype`, an array or NumPy scalar keeps its own, a Python bool, int or float becomes bool, int32 or
        float32. The value must fit the dtype. Tables of more than 65536 elements are refused: pass them as inputs.
        """
        if not isinstance(value, np.ndarray | Sequence):
            return self.scalar(value, None if dtype is None else element_type(dtype, self.error))
        array, kind = table_values(value, dtype, self.error)
        if not array.ndim:
            return self.scalar(array.item(), kind)
        values = [scalar_value(item, kind, self.error) for item in array.reshape(-1).tolist()]
        return self.append("vconst", kind, array.shape, values=values)

    def scalar(self, value: Scalar, dtype: DType | None = None) -> Tensor:
        """A rank-0 constant; equal ones share a node."""
        kind = dtype or _natural_dtype(value)
        asked = (kind, repr(value))
        if asked not in self._asked:
            stated = scalar_value(value, kind, self.error)
            key = (kind, repr(stated))
            if key not in self._scalars:
                self._scalars[key] = self.append("const_scalar", kind, (), value=stated)
            self._asked[asked] = self._scalars[key]
        return self._asked[asked]

    def symbol_value(self, name: str) -> Tensor:
        """The value of a declared symbol at the call, as a rank-0 int64."""
        if name not in self._symbols:
            raise self.error(f"the symbol {name!r} is not declared; declare it with builder.symbol")
        if name not in self._values:
            low, high = self._symbols[name]
            record = {"name": name, "min_val": low, "max_val": high}
            self._values[name] = self.append("define_var", DType.INT64, (), sym_var=record)
        return self._values[name]

    def append(self, node: str, dtype: DType, shape: Sequence[Dim], /, **fields: Any) -> Tensor:
        """Append one node of the wire format with the given fields; the result has the given dtype and shape."""
        tensor = self._new(dtype, tuple(shape))
        self._nodes.append({"node": node, **fields, "out_var": tensor.var, "dtype": dtype.value})
        return tensor

    def append_several(self, node: str, likes: Sequence[Tensor], /, **fields: Any) -> list[Tensor]:
        """Append one node with the given fields and `output_vars`, the results, whose types are those of `likes`."""
        tensors = [self._new(like.dtype, like.shape) for like in likes]
        self._nodes.append({"node": node, **fields, "output_vars": [tensor.var for tensor in tensors]})
        return tensors

    def _new(self, dtype: DType, shape: Shape) -> Tensor:
        tensor = Tensor(self, len(self._tensors), dtype, shape)
        self._tensors.append(tensor)
        return tensor

    def inside(self) -> Builder:
        """A builder for a region of a loop node in this graph, with the same symbols."""
        inner = Builder(self.name)
        inner._symbols, inner.is_inside = self._symbols, True
        return inner

    def region(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> dict[str, Any]:
        """The nodes so far as a region with these inputs and outputs."""
        return {
            "nodes": [dict(node) for node in self._nodes],
            "vars_metadata": self._metadata(),
            "input_vars": [tensor.var for tensor in inputs],
            "output_vars": [tensor.var for tensor in outputs],
        }

    def sources(self, tensor: Tensor) -> tuple[str, ...]:
        """The names of the inputs that a tensor is computed from, in their order, without parameters."""
        from ..nodes import NODE_KINDS

        makers = {var: node for node in self._nodes for var in node.get("output_vars", [node.get("out_var")])}
        found: set[int] = set()
        waiting = [tensor.var]
        while waiting:
            var = waiting.pop()
            if var not in found:
                found.add(var)
                node = makers[var]
                waiting.extend(NODE_KINDS[node["node"]].model_validate(node).operands)
        found -= {tensor.var for tensor in self._parameters}
        return tuple(name for name, given in self._inputs.items() if given.var in found)

    def output(self, *tensors: Tensor) -> None:
        """Add outputs; a program returns them in the order of these calls."""
        for tensor in tensors:
            if isinstance(tensor, list | tuple):
                raise OperandError("output takes tensors one by one, as in builder.output(x, y)")
            self.own(tensor)
        self._outputs.extend(tensors)

    def graph(self) -> Graph:
        """The graph so far, validated. InvalidGraphError when there is no output.

        Warns with a `LargeGraphWarning` if its arrays take more than 32 GiB at the smallest values of its symbols.
        """
        from ..graph import Graph

        made = Graph.model_validate(self.document())
        outputs = [(f"output {place}", each) for place, each in enumerate(self._outputs)]
        arrays = [(name, each.dtype, each.shape) for name, each in [*self._inputs.items(), *outputs]]
        if said := said_of_large(arrays, self._symbols):
            warnings.warn(said, LargeGraphWarning, stacklevel=2)
        return made

    def document(self) -> dict[str, Any]:
        """The graph as the JSON document that the service takes. InvalidGraphError when there is no output."""
        if not self._outputs:
            raise InvalidGraphError("the graph has no output; name one with builder.output", pointers=["/output_vars"])
        return {
            "schema": 1,
            "name": self.name,
            "nodes": [dict(node) for node in self._nodes],
            "vars_metadata": self._metadata(),
            "input_vars": [tensor.var for tensor in self._inputs.values()],
            **({"parameter_vars": [tensor.var for tensor in self._parameters]} if self._parameters else {}),
            "output_vars": [tensor.var for tensor in self._outputs],
            "symbolic_vars": [
                {"name": name, "min_val": low, "max_val": high} for name, (low, high) in self._symbols.items()
            ],
        }

    if not TYPE_CHECKING:  # for which there are no other names

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("__"):
                raise AttributeError(name)
            if name in getattr(sys.modules.get(__package__ or ""), "__all__", ()):
                raise UnknownNameError(f"a builder has no {quoted(name)}: it is a function, tensorkiln.build.{name}")
            raise UnknownNameError(no_such("a builder", name, dir(Builder), {}))

    def _metadata(self) -> dict[str, Any]:
        return {
            str(tensor.var): {"dtype": tensor.dtype.value, "shape": wire(tensor.shape), "device": None}
            for tensor in self._tensors
        }

    def own(self, tensor: Tensor) -> None:
        """InvalidGraphError when the tensor was written with another builder."""
        require_tensor(tensor, "the builder")
        if tensor.builder is not self:
            raise self.error(
                f"a tensor of the graph {tensor.builder.name!r} is used in the graph {self.name!r}: "
                "one builder writes one graph"
            )

    def shape(self, dims: ShapeLike) -> Shape:
        """The dims with symbols' names resolved. InvalidGraphError for an undeclared symbol or a negative dim."""
        if isinstance(dims, str):
            raise self.error(shape_problem(dims))
        try:
            shape = tuple(from_wire(dim) for dim in dims)
        except (ExprError, TypeError):
            shape = tuple(self._dim(dim) for dim in self._dims(dims))
        for dim in shape:
            if self.bounds(dim)[1] < 0 or (isinstance(dim, int) and dim < 0):
                raise self.error(f"the dimension {dim} is negative")
        return shape

    def _dims(self, dims: object) -> Iterable[object]:
        if isinstance(dims, Iterable) and not isinstance(dims, Tensor):
            return cast("Iterable[object]", dims)
        raise self.error(shape_problem(dims))

    def _dim(self, dim: object) -> Dim:
        try:
            return from_wire(int(dim) if isinstance(dim, np.integer) else dim)
        except ExprError as error:
            raise self.error(dim_problem(dim, str(error))) from None

    def bounds(self, dim: Dim) -> tuple[int, int]:
        """The inclusive range of a dim under the bounds of its symbols. InvalidGraphError for an undeclared symbol."""
        try:
            return bounds(dim, self._symbols)
        except KeyError as missing:
            raise self.error(f"the symbol {missing} is not declared; declare it with builder.symbol") from None

    def error(self, message: str) -> InvalidGraphError:
        """The error for a mistake at this point, with a pointer to the next node."""
        return InvalidGraphError(message, pointers=[f"/nodes/{len(self._nodes)}"])


def _natural_dtype(value: Scalar) -> DType:
    if isinstance(value, np.generic):
        return DType.from_numpy(value.dtype)
    if isinstance(value, bool):
        return DType.BOOL
    return DType.INT32 if isinstance(value, int) else DType.FLOAT32
