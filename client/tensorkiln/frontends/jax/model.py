"""A JAX function as a model: trees of arrays in, trees of arrays out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from ...canonical.one_spelling import one_spelling
from ...dtypes import DType
from ...errors import CallInputError
from ...graph import Graph
from ...program import Program
from ...sdk.asked import NATIVE, OptionsSource, TargetSource
from ...types import TensorType
from ..model import Model
from ..solve_symbols import ArgumentSymbols
from .complex_arrays import as_pairs, from_pairs
from .tree import Tree

if TYPE_CHECKING:
    from ...runtime.cuda import Driver
    from ...sdk.client import Client

Array: TypeAlias = "np.ndarray[Any, Any]"

_LARGEST: Final = int(np.finfo(np.float64).max)
"""The largest integer that an argument of a float type accepts."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The signature of a function. Its graph takes the leaves of `arguments` at `kept`, of the element types `dtypes`.

    `complex_arguments` and `complex_results` are the positions of complex leaves, whose dtype here is that of a part.
    `arguments` is the pair of positional and named arguments. `symbols` solves the values of symbols from the leaves at
    `kept`.
    """

    arguments: Tree
    results: Tree
    kept: tuple[int, ...]
    dtypes: tuple[DType, ...]
    symbols: ArgumentSymbols
    complex_arguments: frozenset[int] = frozenset()
    complex_results: frozenset[int] = frozenset()

    def array(self, index: int, leaf: Any, dtype: DType) -> Any:
        """Convert the leaf at `index` for the program."""
        made = as_pairs if index in self.complex_arguments else as_array
        return made(leaf, dtype, partial(_argument_name, self, index))


@dataclass(frozen=True, slots=True, eq=False)
class JaxModel:
    """`model` has the graph, and the names of its inputs and outputs, such as `args[0]['w']` and `result[1]`."""

    model: Model
    signature: Signature

    @property
    def graph(self) -> Graph:
        """The graph of the function."""
        return self.model.graph

    def compile(
        self,
        target: TargetSource = NATIVE,
        options: OptionsSource | None = None,
        *,
        client: Client | None = None,
        threads: int | None = None,
        device: int | Driver | None = None,
    ) -> JaxProgram:
        """Compile the function for `target`; arguments and errors as for `Model.compile`."""
        compiled = self.model.compile(target, options, client=client, threads=threads, device=device)
        return JaxProgram(compiled.program, self.signature)

    def bind(self, /, *arguments: Any) -> JaxModel:
        """Bind the first positional arguments, as `functools.partial` does; their arrays become parameters.

        CallInputError when one has another structure, dtype or shape, or a symbolic size, which has to be fixed first.
        """
        signature, (by_place, by_name) = self.signature, self.signature.arguments.children
        if len(arguments) > len(by_place.children):
            raise CallInputError(f"the function takes {len(by_place.children)} positional arguments: {len(arguments)}")
        first, rest = by_place.children[: len(arguments)], by_place.children[len(arguments) :]
        leaves = [leaf for _, leaf in replace(by_place, children=first).flatten(arguments, "args")]
        count, given = len(leaves), list(zip(signature.kept, signature.dtypes, self.model.inputs.values(), strict=True))
        types = self.graph.types
        parameters = dict(self.model.parameters)
        for index, dtype, var in given:
            if index < count:
                array = signature.array(index, leaves[index], dtype)
                _require_type(_argument_name(signature, index), array, types[var])
                # A copy, so that later changes of the array do not affect the program.
                parameters[var] = np.array(array) if isinstance(array, np.ndarray) else array
        remaining = Tree("tuple", (replace(by_place, children=rest), by_name))
        names = argument_names(remaining)
        inputs = {names[index - count]: var for index, _, var in given if index >= count}
        found = Signature(
            remaining,
            signature.results,
            tuple(index - count for index, _, _ in given if index >= count),
            tuple(dtype for index, dtype, _ in given if index >= count),
            ArgumentSymbols({name: types[var].shape for name, var in inputs.items()}, self.graph.symbols),
            frozenset(index - count for index in signature.complex_arguments if index >= count),
            signature.complex_results,
        )
        order = {"input_vars": (*inputs.values(), *parameters), "parameter_vars": tuple(parameters)}
        graph = one_spelling(self.graph.model_copy(update=order))
        return JaxModel(Model(graph, parameters, inputs, self.model.outputs), found)


@dataclass(frozen=True, slots=True, eq=False)
class JaxProgram:
    """A compiled JAX function with the same call signature, which runs without JAX. `program` works on the leaves."""

    program: Program
    signature: Signature

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        """Run once; return the tree of results, as NumPy arrays or as arrays on the program's GPU.

        A number counts as an array of rank 0. Complex arrays on a GPU are real arrays with a last axis of 2.
        CallInputError when an argument has another structure, dtype or shape; CallBoundsError when a symbolic size is
        out of its bounds.
        """
        by_place, by_name = self.signature.arguments.children
        leaves = (*by_place.flatten(arguments, "args"), *by_name.flatten(named, "kwargs"))
        return self.signature.results.unflatten(iter(self.run([leaf for _, leaf in leaves])))

    def run(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """Run on all leaves of the arguments, unused ones included, and return the leaves of the results."""
        signature = self.signature
        given = [
            signature.array(index, leaves[index], dtype)
            for index, dtype in zip(signature.kept, signature.dtypes, strict=True)
        ]
        results = self.program(*given, **signature.symbols.of_arrays(given))
        return tuple(
            from_pairs(value) if at in signature.complex_results else value for at, value in enumerate(results)
        )


def as_array(value: Any, dtype: DType, name: Callable[[], str]) -> Any:
    """Convert a value for a program: arrays on a GPU are returned as they are, anything else as a NumPy array.

    A number takes the dtype of its argument, as in JAX; an array must have it already. CallInputError, with the
    argument's name, for a number that the dtype cannot represent: a float for integers, an integer out of range.
    """
    if isinstance(value, np.ndarray) or hasattr(value, "__cuda_array_interface__"):
        return value
    if not isinstance(value, bool | int | float):
        return np.asarray(value)
    if not _is_of(value, dtype):
        # str() refuses integers of many thousand digits.
        bits = value.bit_length() if isinstance(value, int) else 0
        shown = f"of {bits} bits" if bits > 64 else str(value)
        raise CallInputError(f"{name()} is {dtype}, and the {type(value).__name__} {shown} is not a value of it")
    with np.errstate(over="ignore"):
        return np.asarray(value, dtype.numpy)


def _is_of(value: float, dtype: DType) -> bool:
    """Whether the dtype accepts a number: a too large float becomes infinite, an integer out of range is refused."""
    if isinstance(value, bool) or dtype.is_bool:
        return isinstance(value, bool) and dtype.is_bool
    if isinstance(value, int):
        low, high = (dtype.min, dtype.max) if dtype.is_integer else (-_LARGEST, _LARGEST)
        return low <= value <= high
    return dtype.is_float


def _require_type(name: str, array: Array, wanted: TensorType) -> None:
    if tuple(array.shape) != wanted.shape or array.dtype != wanted.dtype.numpy:
        shapes = ["x".join(map(str, shape)) or "rank 0" for shape in (array.shape, wanted.shape)]
        raise CallInputError(
            f"{name} is {array.dtype} of {shapes[0]}; a parameter there is {wanted.dtype} of {shapes[1]}"
        )


def _argument_name(signature: Signature, index: int) -> str:
    return argument_names(signature.arguments)[index]


def argument_names(arguments: Tree) -> list[str]:
    """The path of each leaf of the pair of arguments, such as `args[0]['w']` or `kwargs['x']`."""
    by_place, by_name = arguments.children
    return [*leaf_names(by_place, "args"), *leaf_names(by_name, "kwargs")]


def leaf_names(tree: Tree, root: str) -> Iterator[str]:
    """The path of each leaf of a tree, such as `args[0]['w']`."""
    places = tree.flatten(tree.unflatten(iter(range(tree.leaves))), root)
    return (place for place, _ in places)
