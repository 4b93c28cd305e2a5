"""What the page computes at sizes is what Python computes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tensorkiln.errors import CallBoundsError
from tensorkiln.expr import add, bounds, ceildiv, floordiv, floormod, idiv, maximum, minimum, mod, mul, sub, symbol
from tensorkiln.report import Report
from tensorkiln.report.page import page as page_of
from tensorkiln.runtime.profile import ItemProfile
from tensorkiln.schedule.items import ItemAnalysis
from tensorkiln.spec import ProgramSpec
from tests.chromium import becomes
from tests.report.browser.opened import opened
from tests.report.programs import compiled_layer, layer, report_of_layer

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
SHOW = """async bindings => {
  const shown = [];
  for (const binding of bindings) {
    for (const [name, value] of Object.entries(binding)) {
      const input = document.querySelector(`[data-symbol="${name}"]`);
      input.value = String(value);
      input.dispatchEvent(new Event('change', {bubbles: true}));
    }
    await new Promise(done => setTimeout(done));
    shown.push([...document.querySelectorAll('.kernel-row[data-item]')].map(row => ({...row.dataset})));
  }
  return shown;
}"""


def launched(kernel: ProgramSpec, values: dict[str, int]) -> tuple[str, str, str]:
    try:
        dims = kernel.launch_dims(values)
    except CallBoundsError as error:
        return "", "", str(error)
    return "×".join(map(str, dims.global_size)), "×".join(map(str, dims.local_size or ())), ""


def test_launch_sizes_and_estimates_at_200_bindings_are_those_of_python(browser: Any, tmp_path: Path) -> None:
    program = json.loads(report_of_layer().parts["program"])
    variables = [{"name": name, "min": low, "max": high} for name, (low, high) in RANGES.items()]
    item, analysis, kernel = program["schedule"]["items"][1], program["schedule"]["analysis"][1], program["kernels"][1]
    specs = [
        ProgramSpec.model_validate({**kernel, "vars": variables}).with_launch_dims(sizes, sizes if at % 2 else None)
        for at, sizes in enumerate(SIZES)
    ]
    works = [
        ItemAnalysis(item_id=at, flops=mul(N, M, at + 1), bytes_read=mul(4, N), bytes_written=BATCH, est_ns=10**15 + at)
        for at in range(len(SIZES))
    ]
    assert all(bounds(work.flops, RANGES)[1] > 2**53 for work in works[2:])
    program["kernels"] = [spec.model_dump(mode="json") for spec in specs]
    program["symbols"] = [{"name": name, "min_val": low, "max_val": high} for name, (low, high) in RANGES.items()]
    program["schedule"]["items"] = [
        {**item, "item_id": at, "operation": {**item["operation"], "kernel_id": at}, "depends_on": [], "dependents": []}
        for at in range(len(SIZES))
    ]
    program["schedule"] |= {"analysis": [work.model_dump(mode="json") for work in works], "fusion_opportunities": []}
    assert analysis["flops"]
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
        for spec, work, row in zip(specs, works, rows, strict=True):
            expected = launched(spec, values)
            assert (row["grid"], row["group"], row["error"]) == expected, values
            failed += bool(expected[2])
            assert int(float(row["estimate"])) == int(float(work.ns_at(values, RANGES)))
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


def test_what_was_measured_is_shown_at_its_sizes_alone(browser: Any, tmp_path: Path) -> None:
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
