"""Tracing: run a function once on placeholder tensors, to find what it computes and which tensors it changes."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import Any, Final

from ...errors import CallInputError, UnsupportedGraphError
from .element_types import dtype_of, theirs
from .installed import installed
from .nesting import Structure, taken_apart

_ATTEMPTS: Final = 4
TRACING: Final = RLock()
"""Held during a trace, which temporarily changes `Tensor.realize` and tensors of the whole process."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """A tensor that each call reads, and changes if `new` is not None. `current` finds the tensor at each call."""

    current: Callable[[], Any]
    old: Any
    new: Any | None


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """`arguments` and `results` are tinygrad graphs by path; `structure` is that of the results."""

    arguments: Mapping[str, Any]
    results: Mapping[str, Any]
    structure: Structure
    states: Sequence[State]


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """Every tensor of the process, with its graph and gradient."""

    tensors: Sequence[tuple[Any, Any, Any]]

    @staticmethod
    def taken() -> _Snapshot:
        found = [ref() for ref in list(installed("tinygrad.tensor").all_tensors)]
        return _Snapshot([(each, each.uop, each.grad) for each in found if each is not None])

    def restored(self) -> list[tuple[Any, Any, Any]]:
        """Restore all tensors; return those whose graph had changed, with the old and the new graph."""
        changed = [(each, old, each.uop) for each, old, _ in self.tensors if each.uop is not old]
        for each, old, grad in self.tensors:
            each.uop, each.grad = old, grad
        return changed


def traced(function: Callable[..., Any], structure: Structure, leaves: Mapping[str, Any]) -> Trace:
    """Trace a call with these arguments. Its results are not realized, and no tensor is changed.

    Unrealized tensors that the function closes over, such as new weights, are realized by tinygrad first.
    CallInputError when the function changes its arguments or keeps a result, which a compiled function cannot do.

    One thread traces at a time; meanwhile no other thread may use tensors.
    """
    with TRACING:
        for _ in range(_ATTEMPTS):
            found = _attempt(function, structure, leaves)
            if isinstance(found, Trace):
                return found
            installed().Tensor.realize(*found)
    raise UnsupportedGraphError("the function makes tensors at each call that it changes and keeps")


def _attempt(function: Callable[..., Any], structure: Structure, leaves: Mapping[str, Any]) -> Trace | list[Any]:
    """The trace, or the tensors that have to be realized first."""
    random_states()
    before = _Snapshot.taken()
    placeholders = {where: _placeholder(leaf) for where, leaf in leaves.items()}
    given = {where: each.uop for where, each in placeholders.items() if not _is_variable(each)}
    args, named = structure.rebuilt(iter(placeholders.values()))
    try:
        with _not_realizing():
            result = function(*args, **named)
    finally:
        changed = before.restored()
    for where, uop in given.items():
        if placeholders[where].uop is not uop:
            raise CallInputError(f"the function changes its argument {where}: return the new value, or close over it")
    made, tensors = taken_apart(result, "result")
    results = {where: _tensor(each).uop for where, each in tensors.items()}
    for each in (*placeholders.values(), *tensors.values()):
        if not _is_variable(each) and hasattr(each, "grad"):
            each.grad = None
    _check_nothing_kept(before, [*placeholders.values(), *tensors.values()], given)
    graph = installed("tinygrad.uop.ops").UOp.sink(*results.values(), *(new for _, _, new in changed)).toposort()
    pending = [each for each, old, _ in before.tensors if old in graph and not _has_storage(old)]
    pending += [each for each, old, _ in changed if not _has_storage(old)]
    return pending or Trace(given, results, made, [*_states(changed), *_seeds(graph)])


def random_states() -> dict[str, Any]:
    """The seed and counter tensors of tinygrad's random numbers on its default device; created if missing."""
    tensor, device = installed().Tensor, installed().Device.DEFAULT
    if device not in tensor._device_seeds:
        tensor._next_counter(device, 0)
    found = {"seed": tensor._device_seeds[device], "counter": tensor._device_rng_counters[device]}
    tensor.realize(*found.values())
    return found


def _states(changed: Sequence[tuple[Any, Any, Any]]) -> list[State]:
    """One state per written buffer. CallInputError when a buffer is written in several ways."""
    found: dict[Any, State] = {}
    for tensor, old, new in changed:
        if not _is_whole(old):
            # A view: the tensor of the whole buffer has its new value.
            continue
        known = found.get(old.base)
        if known is None:
            found[old.base] = State(_finder(tensor), old, new)
        elif _unshaped(known.new) is not _unshaped(new):
            raise CallInputError("the function assigns to two tensors that share their storage: assign to one of them")
    for _, old, _ in changed:
        if old.base not in found:
            raise CallInputError("the function assigns to a view of a tensor that nothing else holds: keep the tensor")
    return list(found.values())


def _seeds(graph: Mapping[Any, Any]) -> list[State]:
    seed = random_states()["seed"]
    return [State(_finder(seed), seed.uop, None)] if seed.uop.base in graph else []


def _finder(tensor: Any) -> Callable[[], Any]:
    for name, each in random_states().items():
        if tensor is each:
            return lambda: random_states()[name]
    return lambda: tensor


def _unshaped(uop: Any) -> Any:
    while uop.op.name == "RESHAPE":
        uop = uop.src[0]
    return uop


def _is_whole(uop: Any) -> bool:
    return _unshaped(uop).op.name == "BUFFER"


def _has_storage(uop: Any) -> bool:
    """Whether a value is in memory, or needs none."""
    return uop.is_virtual or uop.base.realized is not None


def _is_variable(leaf: Any) -> bool:
    return isinstance(leaf, installed("tinygrad.uop.ops").UOp)


def _tensor(leaf: Any) -> Any:
    tensor = installed().Tensor
    return leaf if isinstance(leaf, tensor) else tensor(leaf)


def _placeholder(leaf: Any) -> Any:
    """An empty tensor like the argument; a variable is returned as it is."""
    if _is_variable(leaf):
        return leaf
    tensor = installed().Tensor
    if not isinstance(leaf, tensor):
        from ...dtypes import DType

        return tensor.empty(*leaf.shape, dtype=theirs(DType.from_numpy(leaf.dtype)))
    whole = tensor.empty(*leaf.uop.max_shape, dtype=theirs(dtype_of(leaf.uop)))
    return whole.shrink_to(leaf.shape).is_param_(leaf.is_param)


def _check_nothing_kept(before: _Snapshot, known: Sequence[Any], given: Mapping[str, Any]) -> None:
    """CallInputError when the function keeps a reference to a tensor that it computes from its arguments."""
    if not _kept(before, known, given):
        return
    gc.collect()
    if kept := _kept(before, known, given):
        raise CallInputError(
            f"the function keeps a tensor of the shape {kept[0].shape} that it computes of its arguments: return it"
        )


def _kept(before: _Snapshot, known: Sequence[Any], given: Mapping[str, Any]) -> list[Any]:
    arguments = {uop.base for uop in given.values()}
    earlier = {id(each) for each, _, _ in before.tensors} | {id(each) for each in known}
    later = [ref() for ref in list(installed("tinygrad.tensor").all_tensors)]
    return [
        each
        for each in later
        if each is not None and id(each) not in earlier and not arguments.isdisjoint(each.uop.toposort())
    ]


@contextmanager
def _not_realizing() -> Generator[None]:
    """Disable `realize` and the reading of values, since placeholders have none."""
    tensor, capturing = installed().Tensor, installed("tinygrad.engine.realize").capturing
    realize = tensor.realize

    def leave(self: Any, *others: Any, **options: Any) -> Any:
        del others, options
        return self

    tensor.realize = leave
    capturing.append(None)
    try:
        yield
    except installed("tinygrad.engine.jit").JitError as error:
        raise CallInputError(
            "the function reads the value of a tensor, which has none while it is compiled: leave it a tensor"
        ) from error
    finally:
        capturing.pop()
        tensor.realize = realize
