"""`torch.compile(model, backend="tensorkiln")`: graphs of dynamo, forward and backward, as compiled programs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from ...errors import CallInputError, LimitExceededError, UnsupportedGraphError
from ...expr import Dim, Expr, evaluate, free_symbols, to_text
from ...sdk.asked import NATIVE
from .arrays import array_of
from .calling import Calling, Named, solve
from .exported import Exported, Input, Output, Role
from .from_export import ranges_of
from .from_fx import attribute, operations_of, output_of
from .layout import Layout, laid_out, layout_of
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
MAX_FIXED: Final = 64
"""Of integers that no bounds hold, as a negative one: their values that have programs of their own."""
INFINITE_INTEGER: Final = 1 << 63
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

    compiled = _Compiled(_exported(module), options, _argument_layouts(module), _result_layouts(module))
    return make_boxed_func(compiled)


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


def _result_layouts(module: Any) -> list[Layout | None]:
    """How each result lies in memory. UnsupportedGraphError that names a result whose layout is not supported."""
    (output,) = (node for node in module.graph.nodes if node.op == "output")
    found: list[Layout | None] = []
    for place, node in enumerate(output.args[0]):
        try:
            found.append(layout_of(node.meta.get("val")) if hasattr(node, "meta") else None)
        except UnsupportedGraphError as error:
            raise UnsupportedGraphError(
                f"result {place} of the graph: how it lies in memory: {error.message}"
            ) from error
    return found


def _argument_layouts(module: Any) -> list[tuple[str, Layout] | None]:
    """Of each argument that has gaps, its name and layout: symbols may be found in that alone."""
    found: list[tuple[str, Layout] | None] = []
    for node in module.graph.nodes:
        if node.op == "placeholder":
            try:
                own = layout_of(node.meta.get("val"))
            except UnsupportedGraphError:
                # Only a result that lies as this one does needs it, and is refused then.
                own = None
            found.append((node.name, own) if own is not None else None)
    return found


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
    """A graph as a function of tensors: its program, and others where sizes or integers outgrow their bounds.

    It may be called by several threads at once.
    """

    def __init__(
        self,
        exported: Exported,
        options: Mapping[str, Any],
        arguments: Sequence[tuple[str, Layout] | None],
        results: Sequence[Layout | None],
    ) -> None:
        self._exported = exported
        self._options = options
        self._arguments = arguments
        self._results = results
        self._lock = threading.Lock()
        self._bound = FIRST_BOUND
        self._main = self._compiled(exported, {}, FIRST_BOUND)
        self._calling = self._main[0].calling
        self._numbers = _numbers(self._calling)
        self._fixed: dict[tuple[tuple[str, int], ...], tuple[TorchModel, Program]] = {}

    def __call__(self, *arguments: Any) -> list[Any]:
        given = {
            name: array_of(value) if hasattr(value, "detach") else value
            for name, value in zip(self._calling.leaves, arguments, strict=True)
        }
        symbols = self._calling.symbols(given)
        model, program = self._fitting(symbols)
        if "random_key" in model.inputs:
            given["random_key"] = _drawn_key()
        arrays = [given[name] for name in model.inputs]
        declared = model.graph.symbols
        found = program(*arrays, **{name: value for name, value in symbols.items() if name in declared})
        tensors = dict(zip(model.outputs, found, strict=True))
        if any(self._results):
            solve(_memory(self._arguments, arguments), symbols)
        returned = zip(model.calling.returned, self._results, strict=True)
        return [_returned(each, layout, tensors, symbols) for each, layout in returned]

    def _fitting(self, symbols: Mapping[str, int]) -> tuple[TorchModel, Program]:
        """The program for these sizes, compiled if there is none yet."""
        fixed = {
            name: value for name, value in symbols.items() if name in self._numbers and not 0 <= value <= LAST_BOUND
        }
        most = max((value for name, value in symbols.items() if name not in fixed), default=0)
        if most > LAST_BOUND:
            raise LimitExceededError(
                f"a size is {most}, at most {LAST_BOUND} is taken", limit="size", maximum=LAST_BOUND, actual=most
            )
        with self._lock:
            if most > self._bound:
                bound = self._bound
                while bound < most:
                    bound *= 4
                self._main = self._compiled(self._exported, {}, bound)
                # Only now: a compile that fails leaves everything as it was.
                self._bound, self._fixed = bound, {}
            if not fixed:
                return self._main
            key = tuple(sorted(fixed.items()))
            if key not in self._fixed:
                if len(self._fixed) == MAX_FIXED:
                    raise LimitExceededError(
                        f"the integer {key[0][1]} is not from 0 to {LAST_BOUND}; each such value needs a program, and "
                        f"at most {MAX_FIXED} are compiled: pass it as a tensor",
                        limit="integers",
                        maximum=MAX_FIXED,
                        actual=MAX_FIXED + 1,
                    )
                ranges = {**self._exported.ranges, **dict.fromkeys(fixed, (-INFINITE_INTEGER, None))}
                self._fixed[key] = self._compiled(replace(self._exported, ranges=ranges), fixed, self._bound)
            return self._fixed[key]

    def _compiled(self, program: Exported, fixed: Mapping[str, int], most: int) -> tuple[TorchModel, Program]:
        exported, bounds = limited(program, fixed, most)
        model = translated(exported, bounds)
        client: Client = self._options.get("client") or _client()
        target = self._options.get("target", NATIVE)
        compiled = client.compile(model.graph, target, threads=self._options.get("threads"))
        return model, compiled.bind(model.parameters) if model.parameters else compiled


def _numbers(calling: Calling) -> frozenset[str]:
    """The symbols that are integers of the user's, and the size of no argument."""
    sizes = {name for shape in calling.shapes.values() for dim in shape for name in free_symbols(dim)}
    return frozenset(to_text(dim) for dim in calling.sizes.values() if isinstance(dim, Expr)) - sizes


def _memory(layouts: Sequence[tuple[str, Layout] | None], tensors: Sequence[Any]) -> list[tuple[str, Dim, int]]:
    """What the arguments say of symbols by how they lie in memory."""
    found: list[tuple[str, Dim, int]] = []
    for each, tensor in zip(layouts, tensors, strict=True):
        if each is not None:
            name, layout = each
            found.append((name, layout.offset, tensor.storage_offset()))
            found += [(name, dim, own) for dim, own in zip(layout.strides, tensor.stride(), strict=True)]
    return found


def _returned(each: object, layout: Layout | None, tensors: Mapping[str, Any], symbols: Mapping[str, int]) -> Any:
    if isinstance(each, Named):
        return laid_out(np.asarray(tensors[each.name]), layout, symbols)
    return evaluate(each, symbols) if isinstance(each, Expr) else each


def _drawn_key() -> np.ndarray[Any, Any]:
    """From torch's generator of the CPU, so that `torch.manual_seed` makes calls repeatable."""
    import torch

    return np.asarray(int(torch.randint(1 << 62, ())), np.uint64)


def _client() -> Client:
    """One embedded service for all graphs of the process."""
    with _CLIENTS_LOCK:
        if not _CLIENTS:
            from ...sdk.client import Client

            _CLIENTS.append(Client())
        return _CLIENTS[0]


_CLIENTS: list[Client] = []
_CLIENTS_LOCK: Final = threading.Lock()
