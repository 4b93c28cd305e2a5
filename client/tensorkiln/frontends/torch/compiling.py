"""`torch.compile(model, backend="tensorkiln")`: graphs of dynamo, forward and backward, as compiled programs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ...errors import CallInputError, DeviceError
from ...sdk.asked import NATIVE
from ..solve_symbols import Place, SymbolSolver
from .arrays import array_of
from .compiled_graph import CompiledGraph
from .exported import Exported, Input, Output, Role
from .from_export import ranges_of
from .from_fx import attribute, operations_of, output_of, size_of
from .growing import Programs
from .model import TorchModel
from .weights import BoundWeights, weights_of

if TYPE_CHECKING:
    from ...sdk.client import Client

Compiled: TypeAlias = "Callable[..., Any]"
OPTIONS: Final = ("client", "target", "threads", "weights")
WEIGHTS: Final = ("read", "bound")


def backend(graph: Any, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None) -> Compiled:
    """A backend of `torch.compile`: compiles what dynamo traced, and its gradients, to CPU programs.

    `options` may have `client`, `target`, `threads` and `weights`. Without a client, one with default settings is made
    and kept for the life of the process. Weights are "read" at each call, or "bound" until their version changes, which
    writes through `.data` do not do. UnsupportedGraphError lists every unsupported operation of a graph with the line
    of the user's code; nothing falls back to torch. CallInputError for an unknown option.
    """
    given = dict(options or {})
    unknown = given.keys() - set(OPTIONS)
    if unknown:
        raise CallInputError(f"the backend has no option {min(unknown)!r}; its options are {', '.join(OPTIONS)}")
    if given.get("weights", "read") not in WEIGHTS:
        raise CallInputError(f"weights are {given['weights']!r}; they may be {' or '.join(map(repr, WEIGHTS))}")
    _check_devices(graph, example_inputs)
    from torch._dynamo.backends.common import aot_autograd

    is_bound = given.get("weights") == "bound"

    def training(module: Any, inputs: Sequence[Any]) -> Compiled:
        del inputs
        return _compile(module, given, weights_of(_arguments(module), trains=True) if is_bound else [])

    def inference(module: Any, inputs: Sequence[Any]) -> Compiled:
        del inputs
        return _compile(module, given, weights_of(_arguments(module), trains=False) if is_bound else [])

    def backward(module: Any, inputs: Sequence[Any]) -> Compiled:
        del inputs
        return _compile(module, given, [])

    compiler = aot_autograd(
        fw_compiler=training, inference_compiler=inference, bw_compiler=backward, decompositions=_decompositions()
    )
    return compiler(graph, example_inputs)


def _check_devices(graph: Any, examples: Sequence[Any]) -> None:
    """DeviceError, naming the argument, unless all arguments are in CPU memory."""
    nodes = [node for node in graph.graph.nodes if node.op == "placeholder"]
    for node, value in zip(nodes, examples, strict=True):
        _check_device(f"the argument {node.name}", getattr(value, "device", None))


def _check_device(what: str, device: Any) -> None:
    if device is not None and device.type != "cpu":
        raise DeviceError(
            f"{what} is a tensor on {device}, and programs of torch.compile take those of the CPU: move the module and "
            "its arguments by .cpu(), or torch.export the module, load it and compile it for a GPU as a target"
        )


def _decompositions() -> dict[Any, Any]:
    """torch's decompositions to core ATen operators, except for operators that this importer translates itself."""
    from torch._decomp import core_aten_decompositions

    from .operators import OPERATORS

    return {op: rule for op, rule in core_aten_decompositions().items() if str(op) not in OPERATORS}


def _compile(module: Any, options: Mapping[str, Any], weights: Collection[str]) -> Compiled:
    from torch._functorch.aot_autograd import make_boxed_func

    def load(model: TorchModel) -> BoundWeights:
        client: Client = options.get("client") or _client()
        target = options.get("target", NATIVE)
        return BoundWeights(model, client.compile(model.graph, target, threads=options.get("threads")), weights)

    programs = Programs(_exported(module, weights), _traced(module), load)
    return make_boxed_func(CompiledGraph(module, programs, weights))


def _arguments(module: Any) -> list[str]:
    return [node.name for node in module.graph.nodes if node.op == "placeholder"]


def _exported(module: Any, weights: Collection[str]) -> Exported:
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    nodes = list(module.graph.nodes)
    operations, types = operations_of(nodes)
    for node in nodes:
        _check_device(f"what {node.name} gives", getattr(node.meta.get("val"), "device", None))
    constants = {node.name: attribute(node) for node in nodes if node.op == "get_attr"}
    # Torch compiles in fake-tensor mode; leave it to read the values of constants.
    with unset_fake_temporarily():
        arrays = {name: array_of(value) for name, value in constants.items() if hasattr(value, "detach")}
    inputs = [Input(node.name, Role.USER, is_weight=node.name in weights) for node in nodes if node.op == "placeholder"]
    inputs += [Input(name, Role.CONSTANT, name) for name in arrays]
    outputs = tuple(Output(value) for value in output_of(nodes))
    return Exported(
        "compiled", tuple(inputs), operations, outputs, types, _ranges(nodes), arrays, complex_as_pairs=True
    )


def _traced(module: Any) -> dict[str, int]:
    """The values of the symbols at tracing time, as far as the arguments determine them."""
    import torch

    places: list[Place] = []
    values: list[int] = []
    for node in module.graph.nodes:
        value: Any = node.meta.get("val") if node.op == "placeholder" else None
        sizes: list[Any] = [value, *getattr(value, "shape", ())]
        for size in sizes:
            if isinstance(size, torch.SymInt) and size.node.hint is not None:
                places.append(Place(f"{node.name} has the size", size_of(size)))
                values.append(int(size.node.hint))
    return SymbolSolver(places).solve(values)


def _ranges(nodes: Sequence[Any]) -> dict[str, tuple[int, int | None]]:
    """The ranges of the symbols, by the guards of the graph."""
    import torch

    for node in nodes:
        value = node.meta.get("val")
        sizes = [value] if isinstance(value, torch.SymInt) else list(getattr(value, "shape", ()))
        for size in sizes:
            if isinstance(size, torch.SymInt):
                return ranges_of(size.node.shape_env.var_to_range)
    return {}


def _client() -> Client:
    """The default client, one for all graphs of the process."""
    with _CLIENTS_LOCK:
        if not _CLIENTS:
            from ...sdk.client import Client

            _CLIENTS.append(Client())
        return _CLIENTS[0]


_CLIENTS: list[Client] = []
_CLIENTS_LOCK: Final = threading.Lock()
