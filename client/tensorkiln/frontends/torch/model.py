"""The result of `load`, and the module that it compiles to."""

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
    """A `Model` of an exported program, with the calling convention of its module.

    `inputs` have torch's names, followed by each buffer that the program changes; `state` has the initial values of
    these. `outputs` are named by their path in the module's results; new values of changed buffers and inputs have
    their names. A program that draws random numbers has the uint64 input `random_key` of rank 0.
    """

    calling: Calling
    state: Mapping[str, Array]

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Read a plain `Model`, without `calling` and `state`, from a file of `save`; errors as for `Model.load`."""
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
        """Compile to an object with the module's own call signature and results. Errors as for `compile`."""
        compiled = Model.compile(self, target, options, client=client, threads=threads, device=device)
        state = {name: np.array(array) for name, array in self.state.items()}
        return CompiledModule(compiled.program, self.calling, tuple(self.inputs), tuple(self.outputs), state)


@dataclass(frozen=True, slots=True, eq=False)
class CompiledModule:
    """A module's program. `state` holds the buffers that it changes, which each call reads and replaces.

    Thread-safe if it changes neither buffers nor arguments.
    """

    program: Program
    calling: Calling
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    state: dict[str, Array]

    def __call__(self, /, *args: Any, random_key: int | None = None, **named: Any) -> Any:
        """Run once; arguments and results are nested as in the module.

        Arrays that the module changes are changed in place. CallInputError when an argument is missing, unknown, of
        another structure, or not the required array or integer; when an array to change is not writable; when a value
        that the export fixed differs; and when random numbers lack a `random_key`. Other errors as for a call of
        `program`. After an error, nothing has changed.
        """
        given = self._given(args, named)
        for name in self.calling.changed:
            _check_writable(name, given[name])
        symbols = self.calling.symbols(given)
        arrays = {name: given[name] for name in self.inputs if name in given} | self.state
        if "random_key" in self.inputs:
            if random_key is None:
                raise CallInputError("the module draws random numbers: give another random_key for every call")
            arrays["random_key"] = np.asarray(random_key, np.uint64)
        found = dict(zip(self.outputs, self.program(*(arrays[name] for name in self.inputs), **symbols), strict=True))
        results = [_result(each, found, symbols) for each in self.calling.returned]
        # A copy: the array may also be a result, which belongs to the caller.
        state = {name: np.array(found[output]) for name, output in self.calling.buffers.items()}
        for name, output in self.calling.changed.items():
            np.copyto(given[name], found[output])
        self.state.update(state)
        tree = self.calling.results
        return nested(tree, iter(results)) if tree is not None else tuple(results)

    def _given(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        tree = self.calling.arguments
        if tree is None:
            raise CallInputError("the program does not say how its module is called")
        flat = list(leaves(tree, as_given(tree, self.calling.argument_names, args, named)))
        return self.calling.checked(flat)


def _check_writable(name: str, value: object) -> None:
    if not isinstance(value, np.ndarray) or not value.flags.writeable:
        kind = "a read-only array" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
        raise CallInputError(f"the module writes into {name}, which must be an array of NumPy's; given is {kind}")


def _result(each: Result, found: Mapping[str, Any], symbols: Mapping[str, int]) -> Any:
    if isinstance(each, Named):
        return found[each.name]
    return evaluate(each, symbols) if isinstance(each, Expr) else each
