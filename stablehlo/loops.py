"""Loops of a program: a node with graphs for the condition and the body. Their turns are computed, or too many to
unroll.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensorkiln.build import Builder, Tensor
from tensorkiln.build.loops import Inside, write_loop

from .op import Apart, Op
from .value import Known, Pair, Value


class Captured(dict[Any, Value]):
    """The values of a region that becomes a separate graph; values of the outer graph become its inputs.

    `around` has the outer values. `taken` has pairs of an outer tensor and the input of `builder`, by the outer var.
    """

    def __init__(self, around: Mapping[Any, Value], builder: Builder) -> None:
        super().__init__()
        self._around, self._builder = around, builder
        self.taken: dict[int, tuple[Tensor, Tensor]] = {}

    def __missing__(self, key: Any) -> Value:
        self[key] = self.capture(self._around[key])
        return self[key]

    def capture(self, value: Value) -> Value:
        """The value of this graph for one of the outer graph."""
        if isinstance(value, Known):
            return value
        if isinstance(value, Pair):
            real, imag = self.capture(value.real), self.capture(value.imag)
            assert not isinstance(real, Pair), "the parts of a complex number are real"
            assert not isinstance(imag, Pair), "the parts of a complex number are real"
            return Pair(real, imag)
        if value.var not in self.taken:
            self.taken[value.var] = value, self._builder.input(value.dtype, value.shape)
        return self.taken[value.var][1]


def computed_loop(op: Op, carried: Sequence[Value], together: int = 1) -> list[Value]:
    """The final carried values. Values that the body returns unchanged are captured instead of carried.

    A turn of the loop is `together` turns of the operation, whose number has to be a multiple of that.
    """
    kept = _kept(op)
    if all(kept):
        kept = [False] * len(kept)
    if not kept:
        op.fail("a loop that carries nothing does not end, or has no turn")
    parts = [[] if keeps else _parts(op, value) for keeps, value in zip(kept, carried, strict=True)]
    sides = [op.apart(region) for region in (0, 1)]
    inputs: list[list[Tensor]] = []
    found: list[list[Value]] = []
    for side, times in zip(sides, (1, together), strict=True):
        own = [[side.builder.input(part.dtype, part.shape) for part in each] for each in parts]
        inputs.append([part for each in own for part in each])
        arguments = [
            side.capture(value) if keeps else _value(each)
            for keeps, value, each in zip(kept, carried, own, strict=True)
        ]
        for _ in range(times):
            arguments = side.run(arguments)
        found.append(arguments)
    decided = [sides[0].tensor(value) for value in found[0]]
    changed = [value for keeps, value in zip(kept, found[1], strict=True) if not keeps]
    given = [part for each in parts for part in each]
    made = [part for value in changed for part in _parts_inside(sides[1], value)]
    for before, after in zip(given, made, strict=True):
        if before.shape != after.shape:
            shown = [f"({', '.join(map(str, each.shape))})" for each in (before, after)]
            op.fail(f"a value that the loop carries has the shape {shown[0]} before a turn and {shown[1]} after it")
    around = {var: outer for side in sides for var, (outer, _) in side.taken.items()}
    for side, own in zip(sides, inputs, strict=True):
        for var, outer in around.items():
            known = side.taken.get(var)
            own.append(side.builder.input(outer.dtype, outer.shape) if known is None else known[1])
    condition = Inside(sides[0].builder, inputs[0], decided)
    body = Inside(sides[1].builder, inputs[1], made)
    results = iter(write_loop(op.builder, condition, body, [*given, *around.values()]))
    return [
        value if keeps else _value([next(results) for _ in each])
        for keeps, value, each in zip(kept, carried, parts, strict=True)
    ]


def _kept(op: Op) -> list[bool]:
    """Whether the body returns each carried value unchanged."""
    block = op.region(1).blocks[0]
    returned = list(block.operations)[-1].operands
    return [given == taken for given, taken in zip(returned, block.arguments, strict=True)]


def _parts(op: Op, value: Value) -> list[Tensor]:
    return [op.as_tensor(part) for part in ((value.real, value.imag) if isinstance(value, Pair) else (value,))]


def _parts_inside(side: Apart, value: Value) -> list[Tensor]:
    parts = (value.real, value.imag) if isinstance(value, Pair) else (value,)
    return [side.tensor(part) for part in parts]


def _value(parts: Sequence[Tensor]) -> Value:
    return parts[0] if len(parts) == 1 else Pair(*parts)
