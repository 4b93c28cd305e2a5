"""The importer's representation of an exported program, read from torch's objects or from an archive without torch."""

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
"""The dtype of the parts of complex numbers, by torch's name of the complex type."""


CHECK: Final = "aten._linalg_check_errors.default"
"""The operator by which torch raises an error for a matrix without a factor. Like other checks of values, not made."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to a value of the graph, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class TensorType:
    """torch's type of a tensor. `dtype` is None for an unsupported element type; `spelled` is torch's name of it.

    `is_dense`: the tensor is known to be row-major and contiguous from the start of its memory.
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
    """One call of an operator: `target` is its name with the overload; `arguments` are by the names of its schema.

    `results` are the names of its results; the name of an unread result may be empty. `line` is the line of the user's
    code, empty if unknown.
    """

    name: str
    target: str
    arguments: Mapping[str, Argument]
    results: tuple[str, ...]
    line: str = ""


class Role(StrEnum):
    """The role of an input in the module."""

    USER = "user"
    PARAMETER = "parameter"
    BUFFER = "buffer"
    CONSTANT = "constant"


@dataclass(frozen=True, slots=True)
class Input:
    """An input of the graph; `target` is the qualified name of the parameter, buffer or constant in its module.

    `is_weight`: the argument may be bound once, like a parameter.
    """

    name: str
    role: Role
    target: str = ""
    is_weight: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """An output of the graph: a user's result, or the new value of the buffer, parameter or input named `mutates`."""

    value: Argument
    mutates: str = ""
    role: Role = Role.USER


@dataclass(frozen=True, slots=True)
class Tree:
    """The structure of nested arguments or results; `context` holds the keys of a dict or the names of fields.

    `make` builds a container other than a tuple, list or dict from its children.
    """

    kind: str
    context: tuple[Any, ...] = ()
    children: tuple[Tree, ...] = ()
    make: Callable[[list[Any]], Any] | None = None

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return 1 if self.kind == "leaf" else sum(child.leaves for child in self.children)


@dataclass(frozen=True, slots=True)
class Exported:
    """A program: inputs in order, operations in order, outputs in order, and the type of every value by its name.

    `ranges` are torch's inclusive bounds of symbols, with None as the upper one if it is infinite; `arrays` holds
    parameters, buffers and constants by target. `arguments` is the tree of positional and keyword arguments, `returned`
    that of the results; both are None for a program without a module, as in `torch.compile`. `complex_as_pairs`:
    arguments and results may be complex, as arrays with their parts on a last axis.
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
