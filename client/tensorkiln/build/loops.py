"""While loops over carried tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..dtypes import DType
from ..limits import MOST_TURNS
from .operands import require_tensor
from .shape import text

if TYPE_CHECKING:
    from .builder import Builder
    from .tensor import Tensor


@dataclass(frozen=True, slots=True)
class Inside:
    """A region of a loop, written with its own `builder`: its inputs and outputs."""

    builder: Builder
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]


def while_loop(
    condition: Callable[..., Tensor],
    body: Callable[..., Tensor | Sequence[Tensor]],
    carried: Sequence[Tensor],
    reads: Sequence[Tensor] = (),
    *,
    most: int = MOST_TURNS,
) -> tuple[Tensor, ...]:
    """Repeat `body` while `condition` holds, and return the final `carried` tensors.

    A call that would take more than `most` turns raises CallTurnsError.

    Both functions take tensors with the dtypes and shapes of `carried` and then `reads`, and must not use any others.
    `condition` returns a bool of rank 0; `body` returns the carried tensors of the next turn, with the dtypes and
    shapes of `carried`. InvalidGraphError when they do not.
    """
    given = [*carried, *reads]
    for each in given:
        require_tensor(each, "while_loop")
    if not carried:
        raise ValueError("a loop carries one tensor at least")
    builder = given[0].builder
    found = [_inside(function, given) for function in (condition, body)]
    if len(found[1].outputs) != len(carried):
        raise builder.error(f"the body of a loop carries {len(carried)} tensors and gives {len(found[1].outputs)}")
    return write_loop(builder, found[0], found[1], given, most)


def _inside(function: Callable[..., Tensor | Sequence[Tensor]], given: Sequence[Tensor]) -> Inside:
    builder = given[0].builder.inside()
    inputs = [builder.input(tensor.dtype, tensor.shape) for tensor in given]
    made = function(*inputs)
    return Inside(builder, inputs, made if isinstance(made, Sequence) else [made])


def write_loop(
    builder: Builder, condition: Inside, body: Inside, given: Sequence[Tensor], most: int = MOST_TURNS
) -> tuple[Tensor, ...]:
    """Write a loop whose `condition` and `body` take the tensors `given` of `builder`, and return its results.

    The carried tensors are the first of `given`, one per output of the body. One that the body returns unchanged is
    only read.
    """
    _require(builder, condition, body, given)
    count = len(body.outputs)
    changed = [at for at in range(count) if body.outputs[at] is not body.inputs[at]] or [0]
    rest = [at for at in range(len(given)) if at not in changed]

    def kind(at: int) -> tuple[str, str]:
        # Group tensors of equal type, because the dialect allows few runs of types.
        return given[at].dtype.value, text(given[at].shape)

    carried = sorted(changed, key=kind)
    order = [*carried, *sorted(rest, key=kind)]
    fields = {
        "condition": _region(condition, order, condition.outputs),
        "body": _region(body, order, [body.outputs[at] for at in carried]),
        "in_vars": [given[at].var for at in order],
        "most": most,
    }
    made = dict(zip(carried, builder.append_several("while", [given[at] for at in carried], **fields), strict=True))
    return tuple(made.get(at, given[at]) for at in range(count))


def _region(inside: Inside, order: Sequence[int], outputs: Sequence[Tensor]) -> dict[str, object]:
    return inside.builder.region([inside.inputs[at] for at in order], outputs)


def _require(builder: Builder, condition: Inside, body: Inside, given: Sequence[Tensor]) -> None:
    for tensor in given:
        builder.own(tensor)
    for inside in (condition, body):
        for tensor in (*inside.inputs, *inside.outputs):
            inside.builder.own(tensor)
    shown = [f"{tensor.dtype} {text(tensor.shape)}" for tensor in condition.outputs]
    if [(tensor.dtype, tensor.shape) for tensor in condition.outputs] != [(DType.BOOL, ())]:
        raise builder.error(f"the condition of a loop gives {', '.join(shown) or 'nothing'}, not one bool of rank 0")
    if not 1 <= len(body.outputs) <= len(given):
        raise builder.error(f"the body of a loop gives {len(body.outputs)} tensors and takes {len(given)}")
    for at, (before, after) in enumerate(zip(given, body.outputs, strict=False)):
        if (before.dtype, before.shape) != (after.dtype, after.shape):
            raise builder.error(
                f"the body of a loop takes {before.dtype} {text(before.shape)} as tensor {at}, and gives "
                f"{after.dtype} {text(after.shape)} for the next turn"
            )
