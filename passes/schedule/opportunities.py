"""Pairs of kernels that are not fused although one feeds only the other: advice for tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensorkiln import expr
from tensorkiln.buffers import Buffer
from tensorkiln.graph import Graph
from tensorkiln.schedule import FusionBarrier, FusionOpportunity, KernelItem

from ..plan.program_plan import Step


def fusion_opportunities(
    steps: Sequence[Step],
    buffers: Sequence[Buffer],
    items: Mapping[int, KernelItem],
    graph: Graph,
) -> tuple[FusionOpportunity, ...]:
    """One opportunity for every temporary that one kernel writes and exactly one other kernel reads.

    `items` are the kernels of `graph` by step. `benefit_score` is the share of the two kernels' memory traffic that
    fusing them would save, at the upper bounds of the symbols; `memory_saved` is the temporary's size in bytes.
    """
    writer = {buffer: number for number, step in enumerate(steps) for buffer in step.writes}
    readers: dict[int, list[int]] = {}
    for number, step in enumerate(steps):
        for buffer in step.reads:
            readers.setdefault(buffer, []).append(number)
    found: list[FusionOpportunity] = []
    for buffer, users in sorted(readers.items()):
        # An empty temporary has no writer.
        pair = writer.get(buffer, -1), users[0]
        if buffers[buffer].role != "temp" or len(users) != 1 or not set(pair) <= items.keys():
            continue
        size = buffers[buffer].size_bytes
        traffic = expr.add(
            *(buffers[b].size_bytes for number in pair for b in (*steps[number].reads, *steps[number].writes))
        )
        saved, moved = (expr.bounds(dim, graph.symbols)[1] for dim in (expr.mul(2, size), traffic))
        reduces = [items[number].reduce is not None for number in pair]
        found.append(
            FusionOpportunity(
                kernel_a=pair[0],
                kernel_b=pair[1],
                fusion_type="reduction" if all(reduces) else "mixed" if any(reduces) else "elementwise",
                benefit_score=saved / moved if moved else 0.0,
                memory_saved=size,
                barrier=_barrier(buffer, steps[users[0]], items[pair[0]], items[users[0]], graph),
            )
        )
    return tuple(found)


def _barrier(buffer: int, step: Step, made: KernelItem, read: KernelItem, graph: Graph) -> FusionBarrier | None:
    """Why the kernel of `step` is not fused with the one that makes the buffer: the reason for the first of its nodes
    that reads it. A packed parameter has no such reason; it is read by the first node that depends on the parameter.
    """
    writes, reads = ({op.node: op for op in item.ops} for item in (made, read))
    for place, behind, node, reason in step.apart:
        if place == buffer and behind in writes and node in reads:
            return FusionBarrier.model_validate({"reason": reason, "writer": writes[behind], "reader": reads[node]})
    packed = {graph.nodes[node].out_var: op for node, op in writes.items()}
    for node, op in reads.items():
        for operand in graph.nodes[node].operands:
            if operand in packed:
                return FusionBarrier(reason="prepared", writer=packed[operand], reader=op)
    return None
