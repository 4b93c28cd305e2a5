"""The result of an importer, and its compiled form: a program that is called with names."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..errors import CallInputError, UnsupportedGraphError
from ..graph import Graph
from ..program import Program
from ..sdk.asked import NATIVE, OptionsSource, TargetSource
from ..show.html_table import size_text
from ..show.program import program_html, program_line
from ..show.signature import Signature, signature_of_graph
from .model_file import Array, Parts, read_model, write_model
from .solve_symbols import ArgumentSymbols

if TYPE_CHECKING:
    from ..runtime.cuda import Driver
    from ..sdk.client import Client


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A graph, the arrays to bind to its parameter inputs, and the names of its other inputs and its outputs.

    `graph.input_vars` holds the vars of `inputs` first, in the model's order, then those of `parameters`;
    `graph.output_vars` those of `outputs`, in their order. `program.bind(model.parameters)` returns a program that
    takes only the model's own inputs.
    """

    graph: Graph
    parameters: Mapping[int, Array]
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]

    @property
    def signature(self) -> Signature:
        """The model's inputs and outputs by name, without its parameters."""
        whole = signature_of_graph(self.graph)
        named = {var: name for name, var in self.inputs.items()}
        given = [replace(each, name=named[each.var]) for each in whole.inputs if each.var in named]
        made = [replace(each, name=name) for each, name in zip(whole.outputs, self.outputs, strict=True)]
        return Signature(whole.name or "model", tuple(given), tuple(made), whole.symbols)

    def __repr__(self) -> str:
        size = sum(array.nbytes for array in self.parameters.values())
        return f"<Model {self.signature}, {len(self.parameters)} parameters of {size_text(size)}>"

    def _repr_html_(self) -> str:
        return self.signature.html()

    def arguments(self, /, **inputs: Array) -> tuple[Array, ...]:
        """All input arrays in the order of `graph.input_vars`. CallInputError when a name is missing or unknown."""
        given = dict(zip(self.inputs.values(), in_order(self.inputs, (), inputs), strict=True))
        by_var = given | dict(self.parameters)
        return tuple(by_var[var] for var in self.graph.input_vars)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model, with its parameters, to one file; it appears complete or not at all.

        CallInputError when a parameter does not have the dtype and shape of its input; OSError when the file cannot be
        written.
        """
        write_model(Parts(self.graph, self.parameters, self.inputs, self.outputs), path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Read a model from a file that `save` wrote.

        RequestError when the file is not a saved model, LimitExceededError when a part is too large, an error of the
        graph when its text is invalid; OSError when the file cannot be read.
        """
        return cls(*read_model(path))

    def compile(
        self,
        target: TargetSource = NATIVE,
        options: OptionsSource | None = None,
        *,
        client: Client | None = None,
        threads: int | None = None,
        device: int | Driver | None = None,
    ) -> CompiledModel:
        """Compile the model for `target` and bind its parameters; arguments and errors as for `Client.compile`.

        Without a `client`, a client with default settings is used for this compile.
        """
        if client is not None:
            program = client.compile(self.graph, target, options, threads=threads, device=device)
        else:
            from ..sdk.client import Client

            with Client() as own:
                program = own.compile(self.graph, target, options, threads=threads, device=device)
        bound = program.bind(self.parameters) if self.parameters else program
        return CompiledModel(bound, tuple(self.inputs), tuple(self.outputs), self.symbols())

    def symbols(self) -> ArgumentSymbols:
        """The solver for the values of the symbols from the shapes of the inputs.

        UnsupportedGraphError for a symbol that no shape determines and that has the name of an input: a call could not
        pass its value.
        """
        shapes = {name: self.graph.types[var].shape for name, var in self.inputs.items()}
        found = ArgumentSymbols(shapes, self.graph.symbols)
        for name in found.unsolved:
            if name in self.inputs:
                raise UnsupportedGraphError(
                    f"no input has an axis that gives the symbol {name}, and a call cannot name it, since an input is "
                    f"called {name}, too: rename the dimension, or fix its size"
                )
        return found


@dataclass(frozen=True, slots=True, eq=False)
class CompiledModel:
    """A program that takes a model's inputs by position or name, and returns its outputs by name.

    `program` has the model's parameters bound. `symbols` computes the values of its symbols from the arrays.
    """

    program: Program
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    symbols: ArgumentSymbols

    @property
    def signature(self) -> Signature:
        """The inputs and outputs of a call, by the model's names."""
        found = self.program.signature
        return replace(
            found,
            inputs=tuple(replace(each, name=name) for each, name in zip(found.inputs, self.inputs, strict=True)),
            outputs=tuple(replace(each, name=name) for each, name in zip(found.outputs, self.outputs, strict=True)),
        )

    def __repr__(self) -> str:
        return program_line("CompiledModel", self.program.compiled, self.signature)

    def _repr_html_(self) -> str:
        return program_html(self.program.compiled, self.signature)

    def __call__(self, /, *arrays: Any, **named: Any) -> dict[str, Any]:
        """Run once: inputs by position, then by name. Symbols take their values from the shapes of the arrays.

        A symbol that no axis determines, such as the `n` of an axis `max(n, 4)`, is passed as an integer by name, as in
        `model(x, n=3)`.

        CallInputError when an input is missing, given twice or unknown, and for a shape that fits no value of the
        symbols or contradicts another input; CallBoundsError when a symbol is missing or out of its bounds; other
        errors as for a call of `program`.
        """
        known = {name: named.pop(name) for name in self.symbols.unsolved if name in named}
        ordered = in_order(self.inputs, arrays, named)
        values = self.symbols.of_arrays(ordered, known)
        return dict(zip(self.outputs, self.program(*ordered, **values), strict=True))


def in_order(names: Collection[str], arrays: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """The arrays of the inputs `names`, in order: the first are `arrays`, the others are in `named`.

    CallInputError when an input is missing, given twice or unknown.
    """
    expected = list(names)[len(arrays) :]
    if len(arrays) > len(names) or set(named) != set(expected):
        given = f"{len(arrays)} by position and {sorted(named)} by name" if arrays else f"{sorted(named)}"
        raise CallInputError(f"the model takes the inputs {list(names)}, given are {given}")
    return (*arrays, *(named[name] for name in expected))
