"""An exported program as this importer reads it, from torch's own objects or from an archive without torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias

import numpy as np

from ...dtypes import DType
from ...expr import Dim

Array: TypeAlias = "np.ndarray[Any, Any]"


COMPLEX_PARTS: Final = {"complex64": DType.FLOAT32, "complex128": DType.FLOAT64}
"""The element types of both parts of complex numbers, by torch's names."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A value of the graph, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class TensorType:
    """What torch says that a tensor is. `dtype` is None for an element type that graphs lack, which `spelled` names.

    `is_dense` says that its elements are known to lie row by row without gaps from the start of their memory.
    """

    dtype: DType | None
    shape: tuple[Dim, ...]
    spelled: str
    device: str = "cpu"
    is_dense: bool = False

    @property
    def is_complex(self) -> bool:
        """Whether its elements are complex numbers."""
        return self.spelled in COMPLEX_PARTS


Literal: TypeAlias = "bool | int | float | complex | str | DType | None"
Argument: TypeAlias = "Literal | Ref | tuple[Argument, ...]"
ValueType: TypeAlias = "TensorType | Dim"


@dataclass(frozen=True, slots=True)
class Operation:
    """One call: `target` is the operator with its overload, `arguments` are by the names of its schema.

    `results` are the names of what it gives, which may be empty where nothing reads it. `line` is where the user's
    Python asks for it, empty where torch does not say.
    """

    name: str
    target: str
    arguments: Mapping[str, Argument]
    results: tuple[str, ...]
    line: str = ""


class Role(StrEnum):
    """What an input is to the module."""

    USER = "user"
    PARAMETER = "parameter"
    BUFFER = "buffer"
    CONSTANT = "constant"


@dataclass(frozen=True, slots=True)
class Input:
    """An input of the graph; `target` is the qualified name of the parameter, buffer or constant in its module.

    `is_weight` says of an argument that it may be bound once.
    """

    name: str
    role: Role
    target: str = ""
    is_weight: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """An output of the graph: the user's, or the new value of what `mutates` names, a buffer, parameter or input."""

    value: Argument
    mutates: str = ""
    role: Role = Role.USER


@dataclass(frozen=True, slots=True)
class Tree:
    """How nested arguments or results are made of leaves; `context` holds the keys of a dict or names of fields.

    `make` builds what is neither a tuple, a list nor a dict of its children.
    """

    kind: str
    context: tuple[Any, ...] = ()
    children: tuple[Tree, ...] = ()
    make: Callable[[list[Any]], Any] | None = None

    @property
    def leaves(self) -> int:
        """How many leaves lie below."""
        return 1 if self.kind == "leaf" else sum(child.leaves for child in self.children)


@dataclass(frozen=True, slots=True)
class Exported:
    """A program: inputs in order, operations in order, outputs in order, and the type of every value by its name.

    `ranges` are torch's bounds of symbols, the upper one None where it is infinite; `arrays` holds parameters, buffers
    and constants by their targets. `arguments` is the tree of positional and keyword arguments, `returned` that of the
    results; both are None where the program is none of a module's, as in `torch.compile`. `complex_as_pairs` says that
    arguments and results may be complex, and have a last axis of their parts.
    """

    name: str
    inputs: tuple[Input, ...]
    operations: tuple[Operation, ...]
    outputs: tuple[Output, ...]
    types: Mapping[str, ValueType]
    ranges: Mapping[str, tuple[int, int | None]]
    arrays: Mapping[str, Array] = field(default_factory=dict[str, Array])
    arguments: Tree | None = None
    argument_names: tuple[str, ...] = ()
    returned: Tree | None = None
    literals: Mapping[str, Literal] = field(default_factory=dict[str, "Literal"])
    complex_as_pairs: bool = False

    def references(self) -> Iterator[str]:
        """The names of all values that an operation or an output reads."""
        for operation in self.operations:
            for argument in operation.arguments.values():
                yield from _names(argument)
        for output in self.outputs:
            yield from _names(output.value)


def _names(argument: Argument) -> Iterator[str]:
    if isinstance(argument, Ref):
        yield argument.name
    elif isinstance(argument, tuple):
        for each in argument:
            yield from _names(each)
