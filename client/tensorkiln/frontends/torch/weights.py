"""Weights of `torch.compile`: bound while they stay, so that what follows from them alone is prepared once.

Torch counts the writes into a tensor, but not those through `.data` or an array of NumPy's: code that uses bound
weights makes none of these.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...program import Program
from .arrays import array_of, as_pairs
from .exported import Array
from .model import TorchModel

Mark: TypeAlias = "tuple[int, int, tuple[int, ...]]"
"""Where a tensor lies, how many writes torch has counted, and its strides."""


def weights_of(names: Sequence[str], *, trains: bool) -> list[str]:
    """Which arguments of the graph that is being compiled are weights and buffers which its training does not change.

    `names` are the arguments of a forward graph, in order; `trains` says that a backward one follows.
    """
    import torch

    context: Any = torch._guards.TracingContext.try_get()  # pyright: ignore[reportPrivateUsage]
    known: Any = getattr(context, "fw_metadata", None)
    if known is None or len(known.input_info) != len(names):
        return []
    found: list[str] = []
    for place in known.static_input_indices:
        own = known.input_info[place]
        is_trained = trains and own.requires_grad
        if not (is_trained or own.mutates_data or own.mutates_metadata):
            found.append(names[int(place)])
    return found


@dataclass(frozen=True, slots=True)
class _Bound:
    """A program with its weights; `held` keeps their memory, so that no other tensor comes to lie where they do."""

    marks: tuple[Mark, ...]
    program: Program
    held: tuple[Any, ...]


class BoundWeights:
    """A program and its weights, the inputs `weights`. Threads may run it at once.

    Weights are bound when they were the same for more calls in a row than the times that they had changed, so that
    training binds none of them.
    """

    def __init__(self, model: TorchModel, program: Program, weights: Collection[str]) -> None:
        self.model = model
        self._program = program.bind(model.parameters) if model.parameters else program
        self._weights = [name for name in model.inputs if name in weights]
        self._rest = [name for name in model.inputs if name not in weights]
        self._lock = threading.Lock()
        self._bound: _Bound | None = None
        self._last: tuple[Mark, ...] = ()
        self._unchanged_calls = self._changes = 0

    def run(
        self, given: Mapping[str, Array], tensors: Mapping[str, Any], symbols: Mapping[str, int]
    ) -> tuple[Array, ...]:
        """The outputs. `given` has all inputs as arrays, `tensors` the weights as torch has them."""
        bound = self._bound_to(tensors) if self._weights else None
        if bound is None:
            return self._program(*(given[name] for name in self.model.inputs), **symbols)
        return bound.program(*(given[name] for name in self._rest), **symbols)

    def _bound_to(self, tensors: Mapping[str, Any]) -> _Bound | None:
        """The program that has these weights; None where they have changed just now, or torch does not count writes."""
        listed = tuple(tensors[name] for name in self._weights)
        if any(tensor.is_inference() for tensor in listed):
            return None
        marks = _marks(listed)
        with self._lock:
            if self._bound is not None and self._bound.marks == marks:
                return self._bound
            self._bound = None
            if marks == self._last:
                self._unchanged_calls += 1
            elif self._last:
                self._unchanged_calls, self._changes = 0, self._changes + 1
            self._last = marks
            if self._unchanged_calls > self._changes:
                # Read again: what the call was given may be a copy that is older than the marks.
                weights = {self.model.inputs[name]: as_pairs(array_of(tensors[name])) for name in self._weights}
                made = _Bound(marks, self._program.bind(weights), tuple(each.detach() for each in listed))
                self._bound = made if _marks(listed) == marks else None
            return self._bound


def _marks(tensors: Sequence[Any]) -> tuple[Mark, ...]:
    return tuple((tensor.data_ptr(), tensor._version, tensor.stride()) for tensor in tensors)
