"""Weights of `torch.compile`: bound while they do not change, so that values computed from them are prepared once.

Torch counts writes to a tensor, except those through `.data` or a NumPy array; code that uses bound weights must not
make such writes.
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
"""A tensor's address, torch's count of its writes, and its strides."""


def weights_of(names: Sequence[str], *, trains: bool) -> list[str]:
    """The arguments of the graph being compiled that are weights and buffers and that training does not change.

    `names` are the arguments of a forward graph, in order; `trains`: a backward graph follows.
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
    """A program with bound weights; `held` keeps their memory alive, so that no other tensor gets the same address."""

    marks: tuple[Mark, ...]
    program: Program
    held: tuple[Any, ...]


class BoundWeights:
    """A program and its weights, the inputs `weights`. Thread-safe.

    Weights are bound once they were unchanged in more consecutive calls than the number of their changes, so that
    training does not bind them.
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
        """Run and return the outputs. `given` has all inputs as arrays, `tensors` the weights as torch tensors."""
        bound = self._bound_to(tensors) if self._weights else None
        if bound is None:
            return self._program(*(given[name] for name in self.model.inputs), **symbols)
        return bound.program(*(given[name] for name in self._rest), **symbols)

    def _bound_to(self, tensors: Mapping[str, Any]) -> _Bound | None:
        """The program bound to these weights; None when they changed recently, or torch does not count writes."""
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
                # Read the weights again: the call's arrays may be copies older than the marks.
                weights = {self.model.inputs[name]: as_pairs(array_of(tensors[name])) for name in self._weights}
                made = _Bound(marks, self._program.bind(weights), tuple(each.detach() for each in listed))
                self._bound = made if _marks(listed) == marks else None
            return self._bound


def _marks(tensors: Sequence[Any]) -> tuple[Mark, ...]:
    return tuple((tensor.data_ptr(), tensor._version, tensor.stride()) for tensor in tensors)
