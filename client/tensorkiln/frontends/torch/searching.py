"""Search in sorted boundaries."""

from __future__ import annotations

from ... import build
from ...build import Tensor
from .call import Call, Operator
from .promotion import alike


def _place(call: Call, sequence: Tensor, values: Tensor, is_right: bool) -> Tensor:
    """The number of boundaries before each value: those below it, and with `is_right` also those equal to it.

    NaN counts as greater than all numbers, so boundaries are counted by "not after", not by "before".
    """
    if sequence.rank == 1:
        table = sequence
    elif sequence.rank == values.rank:
        table = sequence.unsqueeze([-2])
    else:
        call.invalid(f"boundaries of rank {sequence.rank} are not those of values of rank {values.rank}")
    own = values.unsqueeze([-1])
    is_after = table > own if is_right else table >= own
    return (~is_after).sum([-1], dtype="int64").cast(call.dtype)


def _sorted(call: Call) -> Tensor:
    sequence = call.tensor("sorted_sequence")
    if call.has("sorter"):
        sequence = build.gather(sequence, call.tensor("sorter"), sequence.rank - 1)
    values, sequence = alike(call, call.operand("self"), sequence)
    return _place(call, sequence, values, call.flag("right") or call.text("side") == "right")


def _bucket(call: Call) -> Tensor:
    values, boundaries = alike(call, call.operand("self"), call.tensor("boundaries"))
    return _place(call, boundaries, values, call.flag("right"))


OPERATORS: dict[str, Operator] = {
    "aten.bucketize.Scalar": _bucket,
    "aten.bucketize.Tensor": _bucket,
    "aten.searchsorted.Scalar": _sorted,
    "aten.searchsorted.Tensor": _sorted,
}
