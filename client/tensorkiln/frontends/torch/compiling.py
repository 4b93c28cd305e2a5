"""`torch.compile(model, backend="tensorkiln")`: graphs of dynamo, forward and backward, as compiled programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from ...errors import CallInputError, LimitExceededError
from ...expr import Expr, evaluate
from ...sdk.asked import NATIVE
from .arrays import array_of, tensor_of
from .calling import Named
from .exported import Exported, Input, Output, Role
from .from_export import ranges_of
from .from_fx import attribute, operations_of, output_of
from .model import TorchModel
from .ranges import limited
from .translate import translated

if TYPE_CHECKING:
    from ...program import Program
    from ...sdk.client import Client

Compiled: TypeAlias = "Callable[..., Any]"
FIRST_BOUND: Final = 4096
"""The upper bound of a size that torch leaves open; a larger one compiles the graph again, for four times as much."""
LAST_BOUND: Final = 1 << 28
OPTIONS: Final = ("client", "target", "threads")


def backend(graph: Any, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None) -> Compiled:
    """A backend of `torch.compile`: what dynamo traced, with its gradients, by programs of the CPU.

    `options` may have a `client`, a `target` and `threads`; without a client one of the default settings is made, and
    kept while the process lives. UnsupportedGraphError lists every operation of a graph that is not supported, with the
    line of the user's Python; nothing falls back to torch.
    """
    given = dict(options or {})
    unknown = given.keys() - set(OPTIONS)
    if unknown:
        raise CallInputError(f"the backend has no option {min(unknown)!r}; its options are {', '.join(OPTIONS)}")
    from torch._dynamo.backends.common import aot_autograd

    def compile_graph(module: Any, inputs: Sequence[Any]) -> Compiled:
        return _compile(module, inputs, given)

    compiler = aot_autograd(fw_compiler=compile_graph, bw_compiler=compile_graph, decompositions=_decompositions())
    return compiler(graph, example_inputs)


def _decompositions() -> dict[Any, Any]:
    """Those of the core operators of ATen, less those of what this importer has of its own."""
    from torch._decomp import core_aten_decompositions

    from .operators import OPERATORS

    return {op: rule for op, rule in core_aten_decompositions().items() if str(op) not in OPERATORS}


def _compile(module: Any, inputs: Sequence[Any], options: Mapping[str, Any]) -> Compiled:
    from torch._functorch.aot_autograd import make_boxed_func

    return make_boxed_func(_Compiled(_exported(module), options))


def _exported(module: Any) -> Exported:
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    nodes = list(module.graph.nodes)
    operations, types = operations_of(nodes)
    constants = {node.name: attribute(node) for node in nodes if node.op == "get_attr"}
    # Torch compiles under a mode in which tensors have no values; these have.
    with unset_fake_temporarily():
        arrays = {name: array_of(value) for name, value in constants.items() if hasattr(value, "detach")}
    inputs = [Input(node.name, Role.USER) for node in nodes if node.op == "placeholder"]
    inputs += [Input(name, Role.CONSTANT, name) for name in arrays]
    outputs = tuple(Output(value) for value in output_of(nodes))
    return Exported("compiled", tuple(inputs), operations, outputs, types, _ranges(nodes), arrays)


def _ranges(nodes: Sequence[Any]) -> dict[str, tuple[int, int | None]]:
    """What the guards of the graph say of its symbols."""
    import torch

    for node in nodes:
        value = node.meta.get("val")
        sizes = [value] if isinstance(value, torch.SymInt) else list(getattr(value, "shape", ()))
        for size in sizes:
            if isinstance(size, torch.SymInt):
                return ranges_of(size.node.shape_env.var_to_range)
    return {}


class _Compiled:
    """A graph as a function of tensors: its program, and another where a size outgrows its bounds."""

    def __init__(self, exported: Exported, options: Mapping[str, Any]) -> None:
        self._exported = exported
        self._options = options
        self._bound = FIRST_BOUND
        self._model, self._program = self._compiled()

    def __call__(self, *arguments: Any) -> list[Any]:
        names = self._model.calling.leaves
        given = {
            name: array_of(value) if hasattr(value, "detach") else value
            for name, value in zip(names, arguments, strict=True)
        }
        symbols = self._model.calling.symbols(given)
        self._grow(symbols)
        if "random_key" in self._model.inputs:
            given["random_key"] = _drawn_key()
        arrays = [given[name] for name in self._model.inputs]
        declared = self._model.graph.symbols
        found = self._program(*arrays, **{name: value for name, value in symbols.items() if name in declared})
        tensors = dict(zip(self._model.outputs, found, strict=True))
        return [_returned(each, tensors, symbols) for each in self._model.calling.returned]

    def _grow(self, symbols: Mapping[str, int]) -> None:
        """Compile again for larger sizes. LimitExceededError where torch's own bounds allow what ours do not."""
        most = max(symbols.values(), default=0)
        if most > LAST_BOUND:
            raise LimitExceededError(
                f"a size is {most}, at most {LAST_BOUND} is taken", limit="size", maximum=LAST_BOUND, actual=most
            )
        if most > self._bound:
            while self._bound < most:
                self._bound *= 4
            self._model, self._program = self._compiled()

    def _compiled(self) -> tuple[TorchModel, Program]:
        exported, bounds = limited(self._exported, {}, self._bound)
        model = translated(exported, bounds)
        client: Client = self._options.get("client") or _client()
        target = self._options.get("target", NATIVE)
        program = client.compile(model.graph, target, threads=self._options.get("threads"))
        return model, program.bind(model.parameters) if model.parameters else program


def _returned(each: object, tensors: Mapping[str, Any], symbols: Mapping[str, int]) -> Any:
    if isinstance(each, Named):
        return tensor_of(np.asarray(tensors[each.name]))
    return evaluate(each, symbols) if isinstance(each, Expr) else each


def _drawn_key() -> np.ndarray[Any, Any]:
    """From torch's generator of the CPU, so that `torch.manual_seed` makes calls repeatable."""
    import torch

    return np.asarray(int(torch.randint(1 << 62, ())), np.uint64)


def _client() -> Client:
    """One embedded service for all graphs of the process."""
    if not _CLIENTS:
        from ...sdk.client import Client

        _CLIENTS.append(Client())
    return _CLIENTS[0]


_CLIENTS: list[Client] = []
