"""What the page says of a kernel is what the record of its program states: vectors, packs, machine code."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from passes.compile import Compilation
from tensorkiln.build import Builder, exp2, pad, relu, scatter
from tensorkiln.expr import evaluate
from tensorkiln.graph import Graph
from tensorkiln.report import Report
from tensorkiln.schedule import KernelItem
from tensorkiln.schedule.hints import Scalar, Vectorize
from tests.chromium import Page, becomes
from tests.compiled import compiled
from tests.report.browser.opened import opened
from tests.report.programs import compiled_layer, layer

pytestmark = pytest.mark.xdist_group("chromium")

SCALAR = {
    "ordered": "two updates may go to the same place",
    "guarded": "depends on conditions on this loop",
    "single-point": "each turn computes a single element",
}


@cache
def reasons() -> Graph:
    """A product whose weights are packed, and three loops that are in no vectors, each for a reason of its own."""
    b = Builder("reasons")
    x, weights = b.input("float32", (b.symbol("n", 1, 64), 40)), b.parameter("float32", (40, 75))
    indices, updates = b.input("int32", (4, 8)), b.input("float32", (4, 8))
    b.output(relu(x @ weights), scatter(indices, updates * updates, 1, (4, 16)))
    b.output(exp2(pad(b.input("float32", (300, 301)), ((1, 1), (1, 1)))), b.input("float32", (5000, 1)).sum(1))
    return b.graph()


@cache
def compiled_reasons() -> Compilation:
    return compiled(reasons(), "cpu:x86-64-v3")


def kernels(made: Compilation) -> list[tuple[int, KernelItem]]:
    """The kernels of a program by their items."""
    items = [(item.item_id, item.operation) for item in made.program.schedule.items]
    return [(at, operation) for at, operation in items if isinstance(operation, KernelItem)]


def remarks_on(page: Page, item: int) -> list[str]:
    page.locator(f".kernel-row[data-item='{item}']").click()
    page.wait_for_selector(f".outline-item[data-item='{item}'][aria-selected=true]")
    return page.locator("#details .remark").all_inner_texts()


def test_vectors_and_loops_without_them_are_those_of_the_schedule(browser: Any, tmp_path: Path) -> None:
    made = compiled_reasons()
    stated: set[str] = set()
    with opened(browser, Report.of(made.program, graph=reasons()).html(), tmp_path) as page:
        for item, kernel in kernels(made):
            axes = [axis.name for axis in kernel.iter.axes]
            vectors = [hint for hint in kernel.hints if isinstance(hint, Vectorize) and hint.width > 1]
            scalars = [hint for hint in kernel.hints if isinstance(hint, Scalar)]
            remarks = remarks_on(page, item)
            cell = page.locator(f".kernel-row[data-item='{item}'] .c-vector").inner_text()
            assert cell == (f"×{max(hint.width for hint in vectors)}" if vectors else "")
            assert [text for text in remarks if text.startswith("vectors")] == (
                [f"vectors {', '.join(f'{axes[hint.axis]} by {hint.width}' for hint in vectors)}"] if vectors else []
            )
            for hint in scalars:
                start = f"not vectorised {axes[hint.axis]}: "
                assert [text for text in remarks if text.startswith(start) and SCALAR[hint.reason] in text]
            if not scalars and vectors:
                assert all(
                    "around or inside the loop that is" in text for text in remarks if text.startswith("not vectorised")
                )
            stated |= {hint.reason for hint in scalars}
    assert stated == SCALAR.keys()


def test_packs_and_their_readers_link_to_each_other(browser: Any, tmp_path: Path) -> None:
    made = compiled_reasons()
    program = made.program
    (pack,) = program.prepare
    (reader,) = program.schedule.items[pack].dependents
    names = {item: program.kernels[kernel.kernel_id].name for item, kernel in kernels(made)}
    spec = program.kernels[dict(kernels(made))[pack].kernel_id]
    (panels,) = (program.buffers[spec.buffers[slot]] for slot in spec.outs)
    with opened(browser, Report.of(program, graph=reasons()).html(), tmp_path) as page:
        before = remarks_on(page, pack)
        (packed,) = [text for text in before if text.startswith("packed")]
        assert re.match(
            rf"packed #\d+ placeholder.*, in the panels that {names[reader]} \(.*reads, into buffer", packed
        )
        assert f"into buffer {panels.id} of {evaluate(panels.size_bytes, {}) / 1024:#.3g} KiB" in packed
        assert any(text.startswith("prepared") for text in before)
        page.locator("#details .remark", has_text="in the panels").locator("button").click()
        becomes(lambda: page.locator(f".kernel-row[data-item='{reader}'][aria-selected=true]").count(), 1)
        (read,) = [text for text in remarks_on(page, reader) if text.startswith("packed")]
        assert re.search(rf"reads #\d+ placeholder.* in panels, which {names[pack]} packs once", read)
        page.locator("#details .remark", has_text="in panels").locator("button").click()
        becomes(lambda: page.locator(f".kernel-row[data-item='{pack}'][aria-selected=true]").count(), 1)


def machine_code(entry: str, load: str) -> str:
    """A function as NVIDIA's disassembler writes it: two labels of its name, and those of its jumps."""
    return f"""//--------------------- .text.{entry}                --------------------------
\t.section\t.text.{entry},"ax",@progbits
\t.align\t128
        .global         {entry}
        .type           {entry},@function
        .size           {entry},(.L_x_{entry} - {entry})
        .other          {entry},@"STO_CUDA_ENTRY STV_DEFAULT"
{entry}:
.text.{entry}:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   {load} ;
        /*0020*/                   EXIT ;
.L_x_0:
        /*0030*/                   BRA `(.L_x_0);
.L_x_{entry}:
"""


def test_machine_code_of_a_gpu_is_selected_in_both_directions(browser: Any, tmp_path: Path) -> None:
    made = compiled_layer("cuda:sm_90")
    first, second = (kernel.entry for kernel in made.program.kernels)
    text = machine_code(first, "LDG.E R2, desc[UR4][R2.64]") + machine_code(second, "MUFU.EX2 R5, R4")
    report = Report.of(made.program, graph=layer(), stages={**made.dumps, "sass": text}, artifacts=made.artifacts)
    assert json.loads(report.parts["stage:sass"]) == text
    with opened(browser, report.html(), tmp_path) as page:
        code = page.locator(".pane:nth-child(2)")
        code.locator("select").select_option("sass")
        for item, own, other in ((1, "MUFU.EX2", "LDG.E"), (0, "LDG.E", "MUFU.EX2")):
            page.locator(f".kernel-row[data-item='{item}']").click()
            code.locator(".line.own", has_text=own).wait_for()
            becomes(code.locator(".line.own", has_text=other).count, 0)
        code.locator(".line", has_text="MUFU.EX2").locator(".gutter").click()
        page.wait_for_selector(".kernel-row[data-item='1'][aria-selected=true]")
        page.locator("#search").fill("exp2")
        page.locator(".outline-node").click()
        becomes(
            lambda: re.sub(r"#\d+", "#", code.locator(".known").inner_text()),
            f"# unary exp2: known by its kernel, {made.program.kernels[1].name}, here",
        )
