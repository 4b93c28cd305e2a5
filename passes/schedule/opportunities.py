"""Pairs of kernels that are not fused although one feeds only the other: advice for tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensorkiln import expr
from tensorkiln.buffers import Buffer
from tensorkiln.schedule import FusionBarrier, FusionOpportunity, KernelItem, OpRef

from ..plan.program_plan import Step


def fusion_opportunities(
    steps: Sequence[Step],
    buffers: Sequence[Buffer],
    items: Mapping[int, KernelItem],
    ranges: Mapping[str, tuple[int, int]],
) -> tuple[FusionOpportunity, ...]:
    """One opportunity for every temporary that one kernel writes and exactly one other kernel reads.

    `items` are the kernels by step. `benefit_score` is the share of the two kernels' memory traffic that fusing them
    would save, at the upper bounds of the symbols; `memory_saved` is the temporary's size in bytes.
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
        saved, moved = (expr.bounds(dim, ranges)[1] for dim in (expr.mul(2, size), traffic))
        reduces = [items[number].reduce is not None for number in pair]
        found.append(
            FusionOpportunity(
                kernel_a=pair[0],
                kernel_b=pair[1],
                fusion_type="reduction" if all(reduces) else "mixed" if any(reduces) else "elementwise",
                benefit_score=saved / moved if moved else 0.0,
                memory_saved=size,
                barrier=_barrier(steps[pair[0]], items[pair[0]], steps[pair[1]], items[pair[1]]),
            )
        )
    return tuple(found)


def _barrier(writer: Step, made: KernelItem, reader: Step, read: KernelItem) -> FusionBarrier | None:
    """Why the kernels are not fused: the reason for the first node pair in which one reads the other."""
    writes, reads = ({op.node: op for op in item.ops} for item in (made, read))
    for behind, node, reason in reader.apart:
        if behind in writes and node in reads:
            return FusionBarrier.model_validate({"reason": reason, "writer": writes[behind], "reader": reads[node]})
    if writer.is_prepared != reader.is_prepared and writes and reads:
        return FusionBarrier(reason="prepared", writer=_last(made), reader=_last(read))
    return None


def _last(item: KernelItem) -> OpRef:
    return item.ops[-1]
