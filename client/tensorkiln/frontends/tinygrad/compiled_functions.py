"""A decorator that compiles a function on tinygrad tensors with tensorkiln."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import CallInputError
from ...sdk.asked import NATIVE, OptionsSource, TargetSource
from ..model import CompiledModel, Model
from .arrays import Array, array_of, array_of_buffer, tensor_of, write_buffer
from .from_tensors import model_of
from .installed import installed
from .nesting import Structure, call_apart
from .sizes import values_of, variable_of
from .tracing import TRACING, State, Trace, traced

if TYPE_CHECKING:
    from ...runtime.cuda import Driver
    from ...sdk.client import Client


def jit(
    function: Callable[..., Any] | None = None,
    *,
    target: TargetSource = NATIVE,
    options: OptionsSource | None = None,
    client: Client | None = None,
    threads: int | None = None,
    device: int | Driver | None = None,
) -> Any:
    """`function`, compiled once for each signature: shapes, dtypes, structure, and the values of other arguments.

    Arguments and results are tinygrad tensors or NumPy arrays, in tuples, named tuples, lists, dicts and dataclasses.
    Results are tensors if an argument is one or no argument is an array, else NumPy arrays. A Variable, alone or in
    shapes, can have another value at each call without a new compile. `realize` inside the function does nothing.

    Tensors that the function closes over are bound as parameters when a signature is compiled; later changes have no
    effect. Tensors that it assigns to, and the counter of random numbers, are read and written at each call. Values
    computed before an assignment use the old contents. Gradients left in `.grad` are dropped.

    `jit(...)` without a function is a decorator. RequestError when tinygrad is not installed; at a call
    UnsupportedGraphError, which lists all unsupported operations, CallInputError when the function does what a compiled
    function cannot do, and other errors as for a call of a program.
    """

    def make(wanted: Callable[..., Any]) -> Jitted:
        return Jitted(
            wanted,
            functools.partial(
                Model.compile, target=target, options=options, client=client, threads=threads, device=device
            ),
        )

    return make if function is None else make(function)


@dataclass(frozen=True, slots=True, eq=False)
class _Compiled:
    """A signature's program, and the structure of its results."""

    program: CompiledModel
    states: Sequence[State]
    structure: Structure
    results: int

    def __call__(self, leaves: Mapping[str, Any]) -> list[Array]:
        arrays = [_array(leaf) for leaf in leaves.values() if not _is_uop(leaf)]
        buffers = [_buffer_of(state) for state in self.states]
        held = [
            array_of_buffer(buffer).reshape(state.old.shape) for buffer, state in zip(buffers, self.states, strict=True)
        ]
        found = self.program.program(*arrays, *held, **_symbols(leaves))
        written = iter(found[self.results :])
        for buffer, state in zip(buffers, self.states, strict=True):
            if state.new is not None:
                write_buffer(buffer, np.asarray(next(written)))
        return list(found[: self.results])


class Jitted:
    """A function that is compiled at the first call of each signature, one signature at a time in the process.

    During a trace no other thread may use tinygrad tensors, nor call such a function with tensors, because the trace
    changes and then restores graphs, gradients and `Tensor.realize` of the whole process. Threads may call compiled
    signatures concurrently if these change no tensor.
    """

    def __init__(self, function: Callable[..., Any], compile_model: Callable[[Model], CompiledModel]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._compile = compile_model
        self._programs: dict[Any, _Compiled] = {}

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        """Run the function; the first call of a signature compiles it."""
        structure, leaves = self._apart(arguments, named)
        key = (structure, tuple(map(_form, leaves.values())), _mode())
        found = self._programs.get(key)
        if found is None:
            with TRACING:
                found = self._programs.get(key) or self._made(structure, leaves)
                self._programs[key] = found
        outputs: Sequence[Any] = found(leaves)
        tensors = [leaf for leaf in leaves.values() if isinstance(leaf, installed().Tensor)]
        if tensors or not any(isinstance(leaf, np.ndarray) for leaf in leaves.values()):
            device = next((each.device for each in tensors), installed().Device.DEFAULT)
            outputs = [tensor_of(np.asarray(each), device) for each in outputs]
        return found.structure.rebuilt(iter(outputs))

    def model(self, /, *arguments: Any, **named: Any) -> Model:
        """The model that a call with these arguments compiles.

        Its inputs are the arrays, such as `args[0]['w']`, and `state/0` and so on for tensors that the function
        changes; its outputs are `result` and the new states.
        """
        structure, leaves = self._apart(arguments, named)
        return _model(self._name, traced(self._function, structure, leaves))

    def _apart(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Structure, dict[str, Any]]:
        first = type(arguments[0]).__mro__ if arguments else ()
        is_method = any(self is each for owner in first for each in vars(owner).values())
        return call_apart(arguments, named, is_method=is_method)

    @property
    def signatures(self) -> int:
        """The number of signatures compiled."""
        return len(self._programs)

    @property
    def _name(self) -> str:
        name = getattr(self._function, "__name__", "function")
        return name if name.isidentifier() and name.isascii() and len(name) <= 64 else "function"

    def _made(self, structure: Structure, leaves: Mapping[str, Any]) -> _Compiled:
        trace = traced(self._function, structure, leaves)
        program = self._compile(_model(self._name, trace))
        return _Compiled(program, trace.states, trace.structure, len(trace.results))


def _model(name: str, trace: Trace) -> Model:
    if not trace.results and not trace.states:
        raise CallInputError("the function gives no tensor, and changes none")
    inputs = dict(trace.arguments)
    outputs = dict(trace.results)
    for place, state in enumerate(trace.states):
        inputs[f"state/{place}"] = state.old
        if state.new is not None:
            outputs[f"state/{place}"] = state.new
    return model_of(name, inputs, outputs)


def _is_uop(leaf: Any) -> bool:
    return isinstance(leaf, installed("tinygrad.uop.ops").UOp)


def _form(leaf: Any) -> tuple[Any, ...]:
    """The properties of an array or a variable that a trace depends on."""
    if _is_uop(leaf):
        variable = variable_of(leaf)
        return ("variable", variable)
    if isinstance(leaf, np.ndarray):
        return (leaf.dtype.name, leaf.shape)
    sizes = tuple(each if isinstance(each, int) else each.unbind_all()[0] for each in leaf.shape)
    return (leaf.dtype, sizes, leaf.is_param)


def _mode() -> tuple[Any, ...]:
    """The tinygrad settings that a trace depends on."""
    dtypes, helpers = installed().dtypes, installed("tinygrad.helpers")
    return (helpers.TRAINING.value, dtypes.default_float, dtypes.default_int, installed().Device.DEFAULT)


def _array(leaf: Any) -> Array:
    return leaf if isinstance(leaf, np.ndarray) else array_of(leaf)


def _symbols(leaves: Mapping[str, Any]) -> dict[str, int]:
    """The values of the variables, by name. CallInputError when two arguments bind a variable differently."""
    found: dict[str, int] = {}
    for where, leaf in leaves.items():
        sizes = [leaf] if _is_uop(leaf) else getattr(leaf, "shape", ())
        for size in sizes:
            for name, value in values_of(size).items():
                if found.setdefault(name, value) != value:
                    raise CallInputError(f"{where} binds {name} to {value}, and another to {found[name]}")
    return found


def _buffer_of(state: State) -> Any:
    tensor = state.current().realize()
    buffer = tensor.uop
    while buffer.op.name == "RESHAPE":
        buffer = buffer.src[0]
    if buffer.realized is None or tensor.shape != state.old.shape or tensor.dtype != state.old.dtype:
        raise CallInputError("a tensor that the function changes is another one than when it was compiled")
    return buffer
