"""What follows from the figures of a program: what each kernel waits for, and the longest chain of them."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from passes.cpu import machine as cpu
from passes.gpu import machine as gpu
from tensorkiln.dtypes import DType
from tensorkiln.expr import evaluate, mul, symbol
from tensorkiln.report.page import page as page_of
from tensorkiln.schedule.items import ItemAnalysis
from tensorkiln.target import Target
from tests.chromium import becomes
from tests.compiled import target
from tests.report.browser.opened import opened
from tests.report.browser.test_sizes import SHOW
from tests.report.programs import made_program

pytestmark = pytest.mark.xdist_group("chromium")

Ranges = Mapping[str, tuple[int, int]]
RANGES: Ranges = {"n": (1, 4096), "m": (1, 64)}
N, M = (symbol(name) for name in RANGES)
CRITICAL = """shares => {
  const canvas = document.querySelector('.timeline canvas');
  const copy = document.createElement('canvas');
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const pen = copy.getContext('2d', {willReadFrequently: true});
  const at = (x, y) => String([...pen.getImageData(x * devicePixelRatio, y * devicePixelRatio, 1, 1).data]);
  pen.fillStyle = getComputedStyle(canvas).getPropertyValue('--critical').trim();
  pen.fillRect(0, 0, 1, 1);
  const colour = at(0, 0);
  pen.drawImage(canvas, 0, 0);
  const lane = Math.min(64, canvas.clientHeight * 0.2) * 0.55;
  const line = Math.round(24 + lane - 5);
  return shares.map(share => at(Math.round(4 + share * (canvas.clientWidth - 8)), line) === colour);
}"""
"""Which bars of the schedule are underlined as critical, by where their middle is in the whole of the time."""


def bound_of(of: Target, work: ItemAnalysis, values: Mapping[str, int], ranges: Ranges) -> str:
    """What an item waits for, as docs/report.md has it, by the compiler's own table of machines."""
    flops, read, written = (evaluate(dim, values) for dim in work.work)
    moved, taken = read + written, work.ns_at(values, ranges)
    if of.kind == "cuda":
        device, launch = gpu.DEVICES[(of.arch or "").rstrip("af")], gpu.LAUNCH_NS
        computes = flops / (2 * device.multiprocessors * device.lanes * device.gigahertz)
        moves = moved / device.rate
    else:
        machine, launch = cpu.machine_of(of), cpu.LAUNCH_NS
        core = machine.core
        computes = flops / (2 * core.gigahertz * core.products * machine.vectors.lanes(DType.FLOAT32))
        cached = min(moved, core.cached_bytes)
        moves = cached / core.cached_rate + (moved - cached) / core.streamed_rate
    if taken < 2 * launch:
        return "launch"
    if max(computes, moves) < taken / 10:
        return "latency"
    return "compute" if computes > moves else "memory"


def works_of(*all_of: tuple[Any, Any, int]) -> list[ItemAnalysis]:
    """Items by their operations, the bytes that they read, and nanoseconds at the greatest sizes."""
    return [
        ItemAnalysis(item_id=at, flops=flops, bytes_read=read, bytes_written=0, est_ns=ns)
        for at, (flops, read, ns) in enumerate(all_of)
    ]


def test_a_kernel_waits_for_what_pythons_table_of_machines_says(browser: Any, tmp_path: Path) -> None:
    works = works_of(
        (mul(100, N, N), mul(4, N), 20_000_000),
        (mul(1000, N), mul(16, N, N), 11_000_000),
        (mul(N, N), mul(4, N), 10_000_000),
        (mul(10, N), mul(4, N), 1000),
        (mul(50, N, N), mul(40_000, N), 10_000_000),
    )
    draw = random.Random(3)
    bindings = [{"n": n, "m": 1} for n in (1, 64, 4096, *(draw.randint(300, 4000) for _ in range(17)))]
    made = page_of({"program": json.dumps(made_program(works, RANGES)).encode()})
    with opened(browser, made, tmp_path) as page:
        shown = page.evaluate(SHOW, bindings)
    seen: list[set[str]] = [set() for _ in works]
    for values, rows in zip(bindings, shown, strict=True):
        expected = [bound_of(target("cpu:x86-64-v3"), work, values, RANGES) for work in works]
        assert [row["bound"] for row in rows] == expected, values
        for kinds, kind in zip(seen, expected, strict=True):
            kinds.add(kind)
    assert set.union(*seen) == {"compute", "memory", "latency", "launch"}
    # One that computes for longer than it reads only where it is large.
    assert seen[4] >= {"compute", "memory"}


def longest(costs: Sequence[int], depends_on: Sequence[Sequence[int]]) -> tuple[set[int], int]:
    """The dearest of all chains of items that wait for each other, and what it costs."""

    def chains(last: int) -> list[list[int]]:
        return [[last], *([*chain, last] for before in depends_on[last] for chain in chains(before))]

    everything = [chain for last in range(len(costs)) for chain in chains(last)]
    found = max(everything, key=lambda chain: sum(costs[item] for item in chain))
    return set(found), sum(costs[item] for item in found)


def test_the_critical_path_is_the_dearest_chain_and_is_underlined(browser: Any, tmp_path: Path) -> None:
    depends_on = ((), (0,), (0,), (1, 2), ())
    works = works_of((7, 0, 100_000), (N, 0, 1_000_000), (7, 0, 400_000), (7, 0, 200_000), (M, 0, 2_000_000))
    bindings = [{"n": n, "m": m} for n, m in ((4096, 1), (1, 1), (1, 64), (1700, 20), (1600, 24))]
    made = page_of({"program": json.dumps(made_program(works, RANGES, depends_on)).encode()})
    paths: list[set[int]] = []
    with opened(browser, made, tmp_path) as page:
        for values, rows in zip(bindings, page.evaluate(SHOW, bindings), strict=True):
            costs = [work.ns_at(values, RANGES) for work in works]
            path, span = longest(costs, depends_on)
            assert {int(row["item"]) for row in rows if row["critical"] == "true"} == path, values
            assert {int(row["span"]) for row in rows} == {span}, values
            paths.append(path)
        assert paths[:3] == [{0, 1, 3}, {0, 2, 3}, {4}]
        for values, path in zip(bindings[:3], paths, strict=False):
            page.evaluate(SHOW, [values])
            costs = [work.ns_at(values, RANGES) for work in works]
            middles = [(sum(costs[:at]) + cost / 2) / sum(costs) for at, cost in enumerate(costs)]
            becomes(lambda at=middles: page.evaluate(CRITICAL, at), [at in path for at in range(len(works))])
