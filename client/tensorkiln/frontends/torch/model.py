"""What `load` gives back, and the module that it compiles to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import CallInputError
from ...expr import Expr, evaluate
from ...program import Program
from ...sdk.asked import NATIVE, OptionsSource, TargetSource
from ..model import Model
from .calling import Calling, Named, Result
from .exported import Array
from .nesting import as_given, leaves, nested

if TYPE_CHECKING:
    from ...runtime.cuda import Driver
    from ...sdk.client import Client


@dataclass(frozen=True, slots=True, eq=False)
class TorchModel(Model):
    """A `Model` of an exported program, and how the module that it came from is called.

    The names of `inputs` are torch's, and of each buffer that the program changes, as `state` holds them at first. The
    names of `outputs` say where they lie in what the module returns; the new values of what is changed have the names
    of the buffers and inputs. A program that draws random numbers has the uint64 input `random_key` of rank 0.
    """

    calling: Calling
    state: Mapping[str, Array]

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """The plain `Model` in a file that `save` wrote, without `calling` and `state`; errors as for `Model.load`."""
        return Model.load(path)

    def compile_module(
        self,
        target: TargetSource = NATIVE,
        options: OptionsSource | None = None,
        *,
        client: Client | None = None,
        threads: int | None = None,
        device: int | Driver | None = None,
    ) -> CompiledModule:
        """The module compiled: called with its own arguments, it gives its own results. Errors as for `compile`."""
        compiled = self.compile(target, options, client=client, threads=threads, device=device)
        state = {name: np.array(array) for name, array in self.state.items()}
        return CompiledModule(compiled.program, self.calling, tuple(self.inputs), tuple(self.outputs), state)


@dataclass(frozen=True, slots=True, eq=False)
class CompiledModule:
    """A module's program. `state` holds the buffers that it changes, which each call reads and replaces."""

    program: Program
    calling: Calling
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    state: dict[str, Array]

    def __call__(self, /, *args: Any, random_key: int | None = None, **named: Any) -> Any:
        """Run once with the module's arguments, nested as it takes them; what it returns is nested as it was.

        Arrays that the module changes are changed in place. CallInputError when an argument is missing, unknown or of
        another structure, when a value that was fixed by the export differs, and when random numbers lack a
        `random_key`; other errors as for a call of `program`.
        """
        given = self._given(args, named)
        symbols = self.calling.symbols(given)
        arrays = {name: given[name] for name in self.inputs if name in given} | self.state
        if "random_key" in self.inputs:
            if random_key is None:
                raise CallInputError("the module draws random numbers: give another random_key for every call")
            arrays["random_key"] = np.asarray(random_key, np.uint64)
        found = dict(zip(self.outputs, self.program(*(arrays[name] for name in self.inputs), **symbols), strict=True))
        self.state.update({name: found[output] for name, output in self.calling.buffers.items()})
        for name, output in self.calling.changed.items():
            np.copyto(given[name], found[output])
        results = [_result(each, found, symbols) for each in self.calling.returned]
        tree = self.calling.results
        return nested(tree, iter(results)) if tree is not None else tuple(results)

    def _given(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        tree = self.calling.arguments
        if tree is None:
            raise CallInputError("the program does not say how its module is called")
        flat = list(leaves(tree, as_given(tree, self.calling.argument_names, args, named)))
        return self.calling.checked(flat)


def _result(each: Result, found: Mapping[str, Any], symbols: Mapping[str, int]) -> Any:
    if isinstance(each, Named):
        return found[each.name]
    return evaluate(each, symbols) if isinstance(each, Expr) else each
