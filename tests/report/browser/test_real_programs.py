"""Reports of networks, of a GPU and of a very large graph: each opens from disk, is small, and shows what it should."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tensorkiln.expr import evaluate
from tensorkiln.graph import Graph
from tensorkiln.report.page import page as page_of
from tensorkiln.runtime.phases import whole
from tensorkiln.runtime.storage import resolve_storages
from tensorkiln.spec import CompiledProgram
from tests.chromium import Page, becomes
from tests.report.browser.opened import opened
from tests.report.browser.test_sizes import SHOW, launched
from tests.report.networks import bert, report_of, squeezenet
from tests.report.programs import long_chain

pytestmark = pytest.mark.xdist_group("chromium")

MOST_BYTES: Final = 2_000_000
BINDINGS: Final = 20


def selected(page: Page) -> list[str]:
    return page.locator(".kernel-row[aria-selected=true]").evaluate_all("rows => rows.map(row => row.dataset.item)")


@pytest.mark.parametrize(
    ("network", "target"),
    [(bert, "cpu:x86-64-v3"), (bert, "cuda:sm_90"), (squeezenet, "cpu:x86-64-v3")],
    ids=["bert", "bert-on-a-gpu", "squeezenet"],
)
def test_the_report_of_a_network_opens_from_disk_and_is_small(
    browser: Any, tmp_path: Path, network: Callable[[], Graph], target: str
) -> None:
    report = report_of(network, target)
    html = report.html()
    assert len(html.encode()) < MOST_BYTES
    program = CompiledProgram.model_validate_json(report.parts["program"])
    last = len(program.schedule.items) - 1
    with opened(browser, html, tmp_path) as page:
        page.locator(".kernels [role=grid]").focus()
        page.keyboard.press("End")
        becomes(lambda: selected(page), [str(last)])
        page.wait_for_selector(f".outline-item[data-item='{last}'][aria-selected=true]")
        # The code of the last kernel, and a line of it that leads back to it from another one.
        page.locator(".pane:nth-child(2) select").select_option("codegen")
        page.wait_for_selector(".pane:nth-child(2) .line.own")
        line = page.locator(".pane:nth-child(2) .line.own").nth(1).get_attribute("data-line")
        page.locator(".kernels [role=grid]").focus()
        page.keyboard.press("Escape")
        becomes(lambda: selected(page), [])
        page.locator(f".pane:nth-child(2) .line[data-line='{line}'] .gutter").click()
        kernel = program.schedule.items[last].operation
        assert kernel.op == "kernel"
        found = program.schedule.items[int(selected(page)[0])].operation
        assert found.op == "kernel"
        assert program.kernels[found.kernel_id].entry == program.kernels[kernel.kernel_id].entry


def test_the_figures_of_a_network_are_those_of_python(browser: Any, tmp_path: Path) -> None:
    report = report_of(bert, "cuda:sm_90")
    program = CompiledProgram.model_validate_json(report.parts["program"])
    draw = random.Random(2)
    ranges = program.symbol_ranges
    bindings = [{name: draw.randint(low, high) for name, (low, high) in ranges.items()} for _ in range(BINDINGS)]
    with opened(browser, report.html(), tmp_path) as page:
        shown = page.evaluate(SHOW, bindings)
    sizes: set[tuple[str, str]] = set()
    phase = whole(program)
    storages = [each for each in resolve_storages(program, phase) if each.kind in ("scratch", "writable")]
    for values, rows in zip(bindings, shown, strict=True):
        assert len(rows) > 8
        extents = [(each.first, each.last, each.extent(values)) for each in storages]
        live = [sum(size for first, last, size in extents if first <= at <= last) for at in range(len(phase.items))]
        assert len(set(live)) > 3
        for row in rows:
            operation = program.schedule.items[int(row["item"])].operation
            assert operation.op == "kernel"
            assert (row["grid"], row["group"], row["error"]) == launched(program.kernels[operation.kernel_id], values)
            sizes.add((row["item"], row["grid"]))
            work = program.schedule.analysis[int(row["item"])].work
            shown_work = tuple(int(row[name]) for name in ("flops", "read", "written"))
            assert shown_work == tuple(evaluate(dim, values) for dim in work), values
            assert int(row["live"]) == live[phase.items.index(int(row["item"]))], values
            assert int(row["peak"]) == max(live), values
    assert len(sizes) > 2 * BINDINGS


def test_a_graph_of_ten_thousand_nodes_opens_from_disk_and_is_small(browser: Any, tmp_path: Path) -> None:
    parts = long_chain(2500, 4)
    html = page_of(parts)
    assert len(html) < MOST_BYTES
    assert len(json.loads(parts["graph"])["nodes"]) == 10_001
    with opened(browser, html, tmp_path) as page:
        assert page.locator("*").count() < 3000
        page.locator(".kernels [role=grid]").focus()
        page.keyboard.press("End")
        becomes(lambda: selected(page), ["2499"])
        page.wait_for_selector(".outline-item[data-item='2499'][aria-selected=true]")
        page.locator("#search").fill("#9999")
        page.wait_for_selector(".outline-node")
        assert page.locator(".outline-node").inner_text().startswith("#9999")
        page.locator(".outline-node").click()
        assert "unary exp2" in page.locator(".neighbourhood svg").text_content()
