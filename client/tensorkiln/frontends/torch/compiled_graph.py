"""A dynamo graph as a function of tensors, whose results have the memory layouts that torch expects."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import UnsupportedGraphError
from ...expr import Expr, evaluate
from ..solve_symbols import ArgumentSymbols, Place, SymbolSolver
from .arrays import array_of, as_pairs
from .calling import Named
from .growing import Programs
from .layout import Layout, laid_out, layout_of

_TOKEN = np.zeros(0, np.float32)


class CompiledGraph:
    """A graph as a function of tensors. Thread-safe."""

    def __init__(self, module: Any, programs: Programs, weights: Collection[str]) -> None:
        """`weights` are the arguments that may be bound. UnsupportedGraphError as for `_result_layouts`."""
        self._programs = programs
        self._calling = programs.calling
        self._arguments = _argument_layouts(module)
        self._results = _result_layouts(module)
        self._weights = weights

        # Without ranges: sizes beyond the bounds trigger a new compile.
        self._symbols = ArgumentSymbols(self._calling.shapes, None, self._calling.sizes)
        self._memory = SymbolSolver(_memory_places(self._arguments), known=self._symbols.solved)

    def __call__(self, *arguments: Any) -> list[Any]:
        named = dict(zip(self._calling.leaves, arguments, strict=True))
        # torch gives None for a token, which the graph declares as a tensor without elements, and passes on.
        named = {name: _TOKEN if value is None else value for name, value in named.items()}
        given = {name: array_of(value) if hasattr(value, "detach") else value for name, value in named.items()}
        symbols = self._symbols.values(given)
        given = {name: as_pairs(value) for name, value in given.items()}
        held = self._programs.fitting(symbols)
        model = held.model
        if "random_key" in model.inputs:
            given["random_key"] = _drawn_key()
        declared = model.graph.symbols
        sizes = {name: value for name, value in symbols.items() if name in declared}
        found = held.run(given, {name: named[name] for name in self._weights}, sizes)
        tensors = dict(zip(model.outputs, found, strict=True))
        if any(self._results):
            symbols = self._memory.solve(_memory_values(self._arguments, arguments), symbols)
        returned = zip(model.calling.returned, self._results, strict=True)
        return [_returned(each, layout, tensors, symbols) for each, layout in returned]


def _memory_places(layouts: Sequence[tuple[str, Layout] | None]) -> list[Place]:
    """The places for solving symbols from the arguments' offsets and strides."""
    found: list[Place] = []
    for name, layout in filter(None, layouts):
        found.append(Place(f"{name} begins at the element", layout.offset))
        found += [Place(f"axis {axis} of {name} has the stride", dim) for axis, dim in enumerate(layout.strides)]
    return found


def _memory_values(layouts: Sequence[tuple[str, Layout] | None], tensors: Sequence[Any]) -> list[int]:
    """The values of those places."""
    found: list[int] = []
    for layout, tensor in zip(layouts, tensors, strict=True):
        if layout is not None:
            found += [tensor.storage_offset(), *tensor.stride()]
    return found


def _returned(each: object, layout: Layout | None, tensors: Mapping[str, Any], symbols: Mapping[str, int]) -> Any:
    if isinstance(each, Named):
        found = np.asarray(tensors[each.name])
        if each.is_complex:
            found = found.view(np.result_type(found.dtype, np.complex64))[..., 0]
        return laid_out(found, layout, symbols)
    return evaluate(each, symbols) if isinstance(each, Expr) else each


def _drawn_key() -> np.ndarray[Any, Any]:
    """A key from torch's CPU generator, so that `torch.manual_seed` makes calls repeatable."""
    import torch

    return np.asarray(int(torch.randint(1 << 62, ())), np.uint64)


def _result_layouts(module: Any) -> list[Layout | None]:
    """The memory layout of each result. UnsupportedGraphError for a result with an unsupported layout."""
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
    """The name and layout of each non-contiguous argument, which may be the only source of some symbols."""
    found: list[tuple[str, Layout] | None] = []
    for node in module.graph.nodes:
        if node.op == "placeholder":
            try:
                own = layout_of(node.meta.get("val"))
            except UnsupportedGraphError:
                # Needed only for a result with the same layout, which is then refused.
                own = None
            found.append((node.name, own) if own is not None else None)
    return found
