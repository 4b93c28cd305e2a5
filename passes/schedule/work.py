"""The arithmetic and the memory traffic of a kernel, independent of the target."""

from __future__ import annotations

from collections import Counter

from tensorkiln import expr
from tensorkiln.expr import Dim

from ..loops.accesses import loads
from ..loops.body import KernelBody, Stage
from ..loops.domain import extent_of
from ..loops.scalar_dag import Apply, Choose, Constant, Guard, walk
from ..scalar import costs
from .choice import bounded, points_of
from .cost import Evaluate


def additions(node: Apply) -> int:
    """The cost of `node` in 32-bit additions; doubled for 64 bits, since a vector holds half as many elements."""
    dtype, kind = node.args[0].dtype, str(next(iter(node.attributes), ""))
    is_known_power = kind == "pow" and isinstance(node.args[1], Constant)
    cost = costs.KNOWN_POWER if is_known_power else costs.additions(node.op, kind, is_float=dtype.is_float)
    return cost * (2 if dtype.itemsize == 8 else 1)


def operations(body: KernelBody, stage: Stage) -> int:
    """The cost of one point of a stage in 32-bit additions: its elements, and the combination if it reduces."""
    count = sum(additions(node) for node in walk(stage.elements, body.nodes) if isinstance(node, Apply))
    if stage.combine is not None:
        count += sum(2 if element.dtype.itemsize == 8 else 1 for element in stage.elements)
    return count


def selections(body: KernelBody, stage: Stage) -> int:
    """The number of selects and guards at one point of a stage."""
    return sum(isinstance(node, Guard | Choose) for node in walk(stage.elements, body.nodes))


def flops(body: KernelBody) -> Dim:
    """The cost of all stages at all of their points, in 32-bit additions."""
    points = (extent_of(bounded(body, stage.domain.loops)) for stage in body.stages)
    return expr.add(
        *(expr.mul(operations(body, stage), count) for stage, count in zip(body.stages, points, strict=True))
    )


def moved_bytes(body: KernelBody, at: Evaluate) -> int:
    """Bytes that a kernel reads and writes in memory: of each operand, all of it or at most one element per load and
    point.
    """
    points = [points_of(body, stage.domain.loops, at) for stage in body.stages]
    reached: dict[int, int] = {}
    for reads, count in zip(body.once(_reads), points, strict=True):
        for operand, times in reads.items():
            reached[operand] = reached.get(operand, 0) + times * count
    sizes = {number: at(expr.product(value.shape)) for number, value in enumerate(body.operands[: body.local_from])}
    return sum(
        min(size, reached.get(number, size)) * body.operands[number].dtype.itemsize for number, size in sizes.items()
    )


def _reads(body: KernelBody) -> tuple[Counter[int], ...]:
    """How often a point of each stage reads each operand."""
    return tuple(Counter(load.operand for load in loads(stage.elements, body.nodes)) for stage in body.stages)
