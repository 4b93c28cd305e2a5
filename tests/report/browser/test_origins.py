"""A node leads to the lines of every stage that come from it, down to the assembly, and a line to its nodes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tensorkiln.report import Report
from tests.chromium import becomes
from tests.report.browser.opened import opened
from tests.report.browser.test_page import click_from_the_top, selected
from tests.report.programs import compiled_layer, layer, report_of_layer

DRAWN = "() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
"""Resolves when the page has been drawn, and scrolled, once more."""

pytestmark = pytest.mark.xdist_group("chromium")


def length_of(stage: str) -> str:
    """What the page says of a stage's text. The note about a node can be the same for two stages in a row."""
    lines = compiled_layer().dumps[stage].rstrip().count("\n") + 1
    return f"{lines} lines"


def test_a_node_is_found_in_the_text_of_every_stage(browser: Any, tmp_path: Path) -> None:
    below = ("to-linalg", "schedule", "realise", "lower", "entries", "translate", "codegen")
    with opened(browser, report_of_layer().html(), tmp_path) as page:
        right, chosen = page.locator(".pane:nth-child(2)"), page.locator(".outline-node[aria-selected=true]")
        assert "origins" not in right.locator("option").all_inner_texts()
        for stage in ("from-graph", "form-kernels", "merge-kernels", *below):
            page.locator("#search").fill("exp2")
            page.locator(".outline-node").click()
            number = chosen.inner_text().split()[0]
            right.locator("select").select_option(stage)
            becomes(right.locator(".note:not(.known)").first.inner_text, length_of(stage))
            becomes(right.locator(".known").inner_text, f"{number} unary exp2")
            page.evaluate(DRAWN)
            # The lines that come from this node alone, and one of them that leads back to it.
            own = right.locator(".line.node:not(.several)")
            own.first.wait_for()
            assert stage in below or '"kiln.unary"' in own.first.inner_text()
            line = own.first.get_attribute("data-line")
            page.locator("#search").fill("")
            page.locator(".kernels [role=grid]").focus()
            page.keyboard.press("Escape")
            becomes(chosen.count, 0)
            right.locator(f".line[data-line='{line}'] .gutter").click()
            becomes(lambda: [each.split()[0] for each in chosen.all_inner_texts()], [number])


def test_a_line_of_several_nodes_shows_all_of_them(browser: Any, tmp_path: Path) -> None:
    with opened(browser, report_of_layer().html(), tmp_path) as page:
        page.locator("#search").fill("exp2")
        page.locator(".outline-node").click()
        right = page.locator(".pane:nth-child(2)")
        for stage, text in {"schedule": "linalg.generic", "lower": "llvm.cond_br", "translate": "br i1"}.items():
            page.locator(".outline-node").click()
            right.locator("select").select_option(stage)
            right.locator(".line.node.several", has_text=text).first.locator(".gutter").click()
            becomes(lambda: right.locator(".known").inner_text().count("#") > 1, True)
            assert "unary exp2" in right.locator(".known").inner_text()
            becomes(lambda: selected(page), ["1"])


def test_without_the_origins_of_lines_a_node_is_known_by_its_loops_and_kernel(browser: Any, tmp_path: Path) -> None:
    stages = {
        "from-graph": "",
        "form-kernels": "",
        "merge-kernels": "",
        "to-linalg": ": one of those that these loops compute",
        "schedule": ": one of those that these loops compute",
        **dict.fromkeys(
            ("realise", "lower", "entries", "translate", "codegen"), ": known by its kernel, kernel_1, here"
        ),
    }
    made = compiled_layer()
    texts = {name: text for name, text in made.dumps.items() if name != "origins"}
    report = Report.of(made.program, graph=layer(), stages=texts, artifacts=made.artifacts)
    with opened(browser, report.html(), tmp_path) as page:
        page.locator("#search").fill("exp2")
        page.locator(".outline-node").click()
        number = page.locator(".outline-node[aria-selected=true]").inner_text().split()[0]
        right = page.locator(".pane:nth-child(2)")
        for stage, known in stages.items():
            right.locator("select").select_option(stage)
            becomes(right.locator(".note:not(.known)").first.inner_text, length_of(stage))
            becomes(right.locator(".known").inner_text, f"{number} unary exp2{known}")
            if not known:
                right.locator(".line.node", has_text='"kiln.unary"').wait_for()
            elif "loops" in known:
                for text in ("linalg.generic", "linalg.yield"):
                    right.locator(".line.node", has_text=text).first.wait_for()
            else:
                becomes(lambda: right.locator(".line.own").count() > 3, True)
                assert right.locator(".line.node").count() == 0
        # From the assembly back: it begins with a function that only the other kernel calls.
        click_from_the_top(page, re.compile(r"^\d+[a-z]\w+:"))
        becomes(lambda: selected(page), ["0"])
