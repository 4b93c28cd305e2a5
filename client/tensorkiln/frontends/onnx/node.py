"""One ONNX node as an operator function sees it: its inputs as values, its attributes by type, its errors by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, numpy_helper
from onnx.helper import get_attribute_value

from ...build import Builder, Tensor
from ...errors import InvalidGraphError, UnsupportedGraphError
from ...expr import Dim, Expr
from .value import Held, Host, Items, Nothing, Value

if TYPE_CHECKING:
    from .parameters import InnerParameters, Parameters


RunInside = Callable[[GraphProto, Sequence[Held], str, "InnerParameters"], "list[Held]"]
"""Like `RunSubgraph`, but into a separate graph: the outer values that the subgraph reads become its inputs."""
RunSubgraph = Callable[[GraphProto, Sequence[Held], str], "list[Held]"]
"""`run(graph, inputs, path)`: the outputs of a subgraph; `path` prefixes the names of its nodes."""


class Node:
    """The node, the opset it is written in, and the values of its inputs; an input that is left out is None.

    `read` holds the names of all values that are read.
    Every attribute must be read or passed to `ignore`: `refuse_unread` rejects the node otherwise.
    """

    def __init__(
        self,
        proto: NodeProto,
        name: str,
        opset: int,
        inputs: Sequence[Held | None],
        parameters: Parameters,
        read: Collection[str],
        run: RunSubgraph,
        run_inside: RunInside,
    ) -> None:
        self._proto, self._read_names, self.run, self.run_inside = proto, read, run, run_inside
        self.name = name
        self.op = proto.op_type
        self.domain = "" if proto.domain == "ai.onnx" else proto.domain
        self.opset = opset
        self.output_count = len(proto.output)
        self._read_outputs = [bool(output) and output in read for output in proto.output]
        self.inputs = tuple(inputs)
        self.builder: Builder = parameters.builder
        self.parameters = parameters
        self._attributes = {attribute.name: attribute for attribute in proto.attribute}
        self._unread = set(self._attributes)

    def fail(self, message: str) -> NoReturn:
        """Refuse the node."""
        raise UnsupportedGraphError(f"{self.op} {self.name}: {message}", details={"op": self.op, "node": self.name})

    def invalid(self, message: str) -> NoReturn:
        """Refuse what ONNX itself does not allow; the caller adds the node's name."""
        raise InvalidGraphError(message)

    def has(self, position: int) -> bool:
        """Whether the optional input is given."""
        return position < len(self.inputs) and self.inputs[position] is not None

    def is_read(self, output: int) -> bool:
        """Whether any node, or the model's caller, reads an optional output."""
        return output < self.output_count and self._read_outputs[output]

    def held(self, position: int) -> Held:
        """A required input: a value, a sequence, or an empty optional (`Nothing`)."""
        found = self.inputs[position] if position < len(self.inputs) else None
        return self.fail(f"input {position} is missing") if found is None else found

    def value(self, position: int) -> Value:
        """A required input that is a tensor."""
        return self.as_value(self.held(position), f"input {position}")

    def as_value(self, held: Held, what: str) -> Value:
        """`held` as a tensor. UnsupportedGraphError, with `what` in its message, if it is not one."""
        if isinstance(held, Items | Nothing):
            kind = "a sequence" if isinstance(held, Items) else "an optional value that is not there"
            self.fail(f"{what} is {kind}, not a tensor")
        return held

    def items(self, position: int) -> tuple[Value, ...]:
        """The elements of a required input that is a sequence."""
        found = self.held(position)
        return found.values if isinstance(found, Items) else self.fail(f"input {position} is not a sequence")

    def tensor(self, position: int) -> Tensor:
        """An input as a value of the graph; a host array becomes a parameter, a host scalar a constant."""
        found = self.value(position)
        return found if isinstance(found, Tensor) else self.parameter(found)

    def tensors(self) -> list[Tensor]:
        """All inputs as values of the graph."""
        return [self.tensor(position) for position in range(len(self.inputs))]

    def shaped(self, shape: Sequence[Dim], result: Tensor) -> Tensor:
        """`result`, unless an operand that is broadcast to `shape` has stretched it."""
        if result.shape != tuple(shape):
            self.invalid(f"an operand does not broadcast to {tuple(shape)}: the result would be {result.shape}")
        return result

    def parameter(self, array: Host) -> Tensor:
        """A host array as a value of the graph."""
        try:
            return self.parameters.tensor(array)
        except UnsupportedGraphError as error:
            self.fail(error.message)

    def next_key(self) -> Tensor:
        """A key of random numbers, rank-0 uint64, which no other node has."""
        return self.parameters.next_key()

    def apart(self, parameters: Parameters) -> Node:
        """The same node of another graph. All its inputs must be known."""
        return Node(
            self._proto, self.name, self.opset, self.inputs, parameters, self._read_names, self.run, self.run_inside
        )

    def host(self, position: int) -> Host:
        """An input that must be known when the model is imported, such as the shape of a Reshape."""
        found = self.value(position)
        if isinstance(found, Tensor):
            self.refuse_computed(position, found)
        return found

    def host_dims(self, position: int) -> Host:
        """An input that must be known when the model is imported; dims that were cast to any integer type are."""
        found = self.value(position)
        dims = self.parameters.dims_of_cast(found) if isinstance(found, Tensor) else None
        return self.host(position) if dims is None else dims

    def known_integer(self, position: int) -> int:
        """An input that is one integer and must be known. UnsupportedGraphError where it depends on symbols."""
        (found,) = self.host(position).reshape(-1).tolist()
        if isinstance(found, Expr):
            self.fail(f"input {position} is {found}, which depends on symbols; fix these by `symbols`")
        return int(found)

    def refuse_computed(self, position: int, value: Tensor) -> NoReturn:
        """Refuse an input that is computed at run time, and say which inputs of the model would have to be known."""
        if self.builder.is_inside:
            self.fail(f"input {position} is computed in a loop whose turns are counted at run time")
        self.fail(f"input {position} is computed at run time and the graph depends on it{self.advice(value)}")

    def advice(self, *values: Value) -> str:
        """The end of an error message: which inputs or symbols to fix so that the values are known at import."""
        computed = [value for value in values if isinstance(value, Tensor)]
        if not computed or self.builder.is_inside:
            return ""
        names = dict.fromkeys(name for value in computed for name in self.builder.sources(value))
        if names:
            return f"; pass {', '.join(map(repr, names))} in `constants`"
        if self.builder.symbols:
            return "; it is computed from sizes, which `symbols` fixes, or from weights only, and too large"
        return "; it is computed from weights only, and too large"

    def hosts(self) -> list[Host]:
        """All inputs, each of which must be known."""
        return [self.host(position) for position in range(len(self.inputs))]

    def is_known(self) -> bool:
        """Whether every input that is given is known when the model is imported."""
        return all(value is None or isinstance(value, np.ndarray) for value in self.inputs)

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer attribute."""
        return self._read(name, AttributeProto.INT, default, int)

    def number(self, name: str, default: float | None = None) -> float:
        """A float attribute; ONNX stores it as float32."""
        return self._read(name, AttributeProto.FLOAT, default, float)

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """A list of integers."""
        return self._read(name, AttributeProto.INTS, default, list[int])

    def numbers(self, name: str, default: Sequence[float] | None = None) -> list[float]:
        """A list of floats."""
        return self._read(name, AttributeProto.FLOATS, default, list[float])

    def string(self, name: str, default: str | None = None) -> str:
        """A string attribute."""
        return self._read(
            name, AttributeProto.STRING, default, lambda raw: raw if isinstance(raw, str) else raw.decode()
        )

    def strings(self, name: str, default: Sequence[str]) -> list[str]:
        """A list of strings."""
        return self._read(name, AttributeProto.STRINGS, default, lambda raw: [each.decode() for each in raw])

    def choice(self, name: str, known: Collection[str], default: str | None = None) -> str:
        """A string attribute that is one of a few. InvalidGraphError when it is another."""
        found = self.string(name, default)
        return found if found in known else self.invalid(f"{name} {found!r} is not one of {', '.join(known)}")

    def array(self, name: str, default: Host | None = None) -> Host:
        """A tensor attribute."""
        return self._read(name, AttributeProto.TENSOR, default, lambda raw: np.asarray(numpy_helper.to_array(raw)))

    def subgraph(self, name: str) -> GraphProto:
        """A graph attribute."""
        return self._read(name, AttributeProto.GRAPH, None, lambda raw: raw)

    def is_set(self, name: str) -> bool:
        """Whether the attribute is given at all."""
        return name in self._attributes

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """All attributes that are given."""
        return tuple(self._attributes)

    def ignore(self, *names: str) -> None:
        """Read attributes that change nothing in the result."""
        self._unread.difference_update(names)

    def _read(self, name: str, kind: int, default: Any, convert: Callable[[Any], Any]) -> Any:
        if name not in self._attributes:
            return self.fail(f"the attribute {name} is missing") if default is None else default
        self._unread.discard(name)
        attribute = self._attributes[name]
        if attribute.type != kind:
            self.fail(f"the attribute {name} has the wrong type")
        return convert(get_attribute_value(attribute))

    def refuse_unread(self) -> None:
        """UnsupportedGraphError if the operator function left an attribute of the node unread."""
        if self._unread:
            self.fail(f"the attribute {min(self._unread)} is not supported in opset {self.opset}")
