"""What the page computes at sizes is what Python computes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tensorkiln.buffers import Buffer
from tensorkiln.dtypes import DType
from tensorkiln.errors import CallBoundsError
from tensorkiln.expr import (
    add,
    bounds,
    ceildiv,
    evaluate,
    floordiv,
    floormod,
    idiv,
    maximum,
    minimum,
    mod,
    mul,
    sub,
    symbol,
)
from tensorkiln.report import Report
from tensorkiln.report.page import page as page_of
from tensorkiln.runtime.profile import ItemProfile
from tensorkiln.runtime.storage import span_of
from tensorkiln.schedule.items import ItemAnalysis
from tensorkiln.spec import ProgramSpec
from tests.chromium import becomes
from tests.report.browser.opened import opened
from tests.report.programs import compiled_layer, layer, made_program, report_of_layer

pytestmark = pytest.mark.xdist_group("chromium")

RANGES = {"n": (1, 4096), "m": (2, 1 << 40), "batch": (0, 64)}
N, M, BATCH = (symbol(name) for name in RANGES)
SIZES = (
    (ceildiv(N, 222), maximum(M, N, 7), 1),
    (mul(N, BATCH), minimum(M, 65535), floormod(M, 13)),
    (sub(N, BATCH), idiv(sub(BATCH, N), 3), mod(sub(BATCH, N), 5)),
    (mul(M, M), 3, 1),
    (floordiv(sub(BATCH, N), 7), 1, 1),
    (floordiv(M, BATCH), floormod(sub(N, M), -7), add(mul(3, N), mul(-2, M), 1 << 42)),
)
WORKS = (
    (mul(N, M), mul(4, N), BATCH),
    (mul(N, M, 2), add(mul(4, N), mul(8, M)), floordiv(mul(N, BATCH), 7)),
    (mul(N, M, 3), mul(4, maximum(M, N)), sub(mul(64, N), BATCH)),
    (mul(N, M, 4), ceildiv(M, 222), floormod(M, 13)),
    (mul(N, M, 5), minimum(M, 65535), mod(M, 7)),
    (mul(N, M, 6), 12, mul(4, BATCH, N)),
)
BUFFERS = (
    Buffer(id=0, role="input", lifetime=(0, 5), dtype=DType.FLOAT32, shape=(M,), size_bytes=mul(4, M)),
    Buffer(id=1, role="temp", lifetime=(0, 1), dtype=DType.FLOAT32, shape=(N,), size_bytes=mul(4, N)),
    Buffer(id=2, role="temp", lifetime=(1, 2), dtype=DType.FLOAT32, shape=(N,), size_bytes=mul(4, N), alias_group=1),
    Buffer(
        id=3,
        role="temp",
        lifetime=(2, 4),
        dtype=DType.FLOAT32,
        shape=(M,),
        size_bytes=mul(4, M),
        alias_group=1,
        offset=mul(64, N),
    ),
    # A window without bytes where the batch is empty: its offset counts for nothing then.
    Buffer(
        id=4,
        role="temp",
        lifetime=(3, 3),
        dtype=DType.INT8,
        shape=(BATCH,),
        size_bytes=BATCH,
        alias_group=2,
        offset=mul(1 << 20, N),
    ),
    Buffer(id=5, role="scratch", lifetime=(4, 4), dtype=DType.INT8, shape=(N,), size_bytes=ceildiv(M, 3)),
    Buffer(id=6, role="output", lifetime=(2, 5), dtype=DType.FLOAT32, shape=(N,), size_bytes=mul(4, N)),
)
"""Two storages of several windows, and what is not counted: the caller's."""
SHOW = """async bindings => {
  const shown = [];
  for (const binding of bindings) {
    for (const [name, value] of Object.entries(binding)) {
      const input = document.querySelector(`[data-symbol="${name}"]`);
      input.value = String(value);
      input.dispatchEvent(new Event('change', {bubbles: true}));
    }
    await new Promise(done => setTimeout(done));
    const {peak, span} = document.querySelector('.totals').dataset;
    const bound = row => row.querySelector('.c-bound').textContent;
    const rows = [...document.querySelectorAll('.kernel-row[data-item]')];
    shown.push(rows.map(row => ({...row.dataset, bound: bound(row), peak, span})));
  }
  return shown;
}"""


def launched(kernel: ProgramSpec, values: dict[str, int]) -> tuple[str, str, str]:
    try:
        dims = kernel.launch_dims(values)
    except CallBoundsError as error:
        return "", "", str(error)
    return "×".join(map(str, dims.global_size)), "×".join(map(str, dims.local_size or ())), ""


def live_bytes(item: int, values: dict[str, int]) -> int:
    """Of the storages in `BUFFERS` that are needed while an item runs, as the runtime measures them."""
    storages: dict[tuple[str, int], list[Buffer]] = {}
    for buffer in BUFFERS:
        if buffer.role != "input":
            storages.setdefault(buffer.storage, []).append(buffer)
    return sum(
        max(span_of(each, values)[1] for each in members)
        for members in storages.values()
        if min(each.lifetime[0] for each in members) <= item <= max(each.lifetime[1] for each in members)
    )


def test_all_figures_at_200_bindings_are_those_of_python(browser: Any, tmp_path: Path) -> None:
    works = [
        ItemAnalysis(item_id=at, flops=flops, bytes_read=read, bytes_written=written, est_ns=10**15 + at)
        for at, (flops, read, written) in enumerate(WORKS)
    ]
    assert all(bounds(work.flops, RANGES)[1] > 2**53 for work in works[2:])
    program = made_program(works, RANGES)
    variables = [{"name": name, "min": low, "max": high} for name, (low, high) in RANGES.items()]
    specs = [
        ProgramSpec.model_validate({**kernel, "vars": variables}).with_launch_dims(sizes, sizes if at % 2 else None)
        for at, (kernel, sizes) in enumerate(zip(program["kernels"], SIZES, strict=True))
    ]
    program["kernels"] = [spec.model_dump(mode="json") for spec in specs]
    program["buffers"] = [buffer.model_dump(mode="json") for buffer in BUFFERS]
    draw = random.Random(1)
    bindings = [{name: draw.randint(low, high) for name, (low, high) in RANGES.items()} for _ in range(194)]
    bindings += [{"n": 1, "m": 2, "batch": 0}, {"n": 4096, "m": 1 << 40, "batch": 64}, {"n": 1, "m": 2, "batch": 64}]
    bindings += [{"n": 4096, "m": 3, "batch": 63}, {"n": 7, "m": 13, "batch": 7}, {"n": 256, "m": 1 << 31, "batch": 2}]
    with opened(browser, page_of({"program": json.dumps(program).encode()}), tmp_path) as page:
        shown = page.evaluate(SHOW, bindings)
    assert len(shown) == 200
    failed = 0
    for values, rows in zip(bindings, shown, strict=True):
        assert len(rows) == len(specs)
        live = [live_bytes(at, values) for at in range(len(works))]
        for spec, work, row in zip(specs, works, rows, strict=True):
            expected = launched(spec, values)
            assert (row["grid"], row["group"], row["error"]) == expected, values
            failed += bool(expected[2])
            assert int(float(row["estimate"])) == int(float(work.ns_at(values, RANGES)))
            # A double, as Python makes one of an integer.
            moved = [float(row[name]) for name in ("flops", "read", "written")]
            assert moved == [float(evaluate(dim, values)) for dim in work.work], values
            assert int(row["live"]) == live[work.item_id], values
            assert int(row["peak"]) == max(live), values
    assert 100 < failed < 1000


def test_a_slider_moves_the_value_over_its_whole_range(browser: Any, tmp_path: Path) -> None:
    with opened(browser, report_of_layer().html(), tmp_path) as page:
        value, slider = page.locator("[data-symbol=n]"), page.locator("[aria-label='Size n']")
        assert value.input_value() == "256"
        before = page.locator(".kernel-row[data-item='0']").get_attribute("data-estimate")
        for position, expected in (("0", "1"), ("1000", "4096")):
            slider.fill(position)
            becomes(value.input_value, expected)
            assert slider.get_attribute("aria-valuetext") == expected
        assert float(page.locator(".kernel-row[data-item='0']").get_attribute("data-estimate")) > float(before)
        value.fill("5000")
        value.press("Enter")
        becomes(value.input_value, "4096")


def test_measured_times_are_shown_at_their_sizes_only(browser: Any, tmp_path: Path) -> None:
    taken = [ItemProfile(at, "kernel", f"kernel_{at}", 1000 * (at + 1), None, 2) for at in range(2)]
    report = Report.of(compiled_layer().program, graph=layer(), profile=taken, sizes={"n": 77})
    with opened(browser, report.html(), tmp_path) as page:
        value, cells = page.locator("[data-symbol=n]"), page.locator("[data-item] .c-measured")
        becomes(value.input_value, "77")
        becomes(cells.all_inner_texts, ["1.00 µs", "2.00 µs"])
        value.fill("78")
        value.press("Enter")
        becomes(cells.all_inner_texts, ["", ""])
        page.locator(".sliders button", has_text="n = 77").click()
        becomes(cells.all_inner_texts, ["1.00 µs", "2.00 µs"])
        assert "2 threads" not in page.locator("#details").inner_text()
        page.locator(".kernel-row[data-item='1']").click()
        assert "2.00 µs on 2 threads" in page.locator("#details").inner_text()
