from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from service.http.connections import SAFE_HEADERS
from tensorkiln.report.page import content_security_policy
from tensorkiln.report.page import page as page_of
from tensorkiln.schedule.items import ItemAnalysis
from tests.bench.pages import opening_ms
from tests.chromium import Page, becomes
from tests.report.browser.opened import opened
from tests.report.programs import HOSTILE, hostile, made_program, report_of_layer

pytestmark = pytest.mark.xdist_group("chromium")

STRUCTURE = frozenset(
    ("op", "role", "kind", "hint", "node", "dtype", "device", "status", "entry", "scope", "artifact", "digest", "dump")
)
"""Fields that say what a record is: a text of another kind is no record of a program."""
OTHER_BARS = 95
"""Pixels from the top of the schedule to the bars of the program that another is compared with."""
SELECTED = ".kernel-row[aria-selected=true]"


SCROLLED_UP = """rows => {
  rows.scrollTop = 0;
  const drawn = () => new Promise(requestAnimationFrame);
  return drawn().then(drawn).then(() => rows.scrollTop);
}"""
"""Scrolls to the top; the place of the rows when they have been drawn twice."""


def click_from_the_top(page: Page, text: str | re.Pattern[str]) -> None:
    """Click the number of the first line with a text, near the top of the right pane, which may scroll by itself."""
    found = page.locator(".pane:nth-child(2) .line", has_text=text).first.locator(".gutter")

    def is_clicked() -> bool:
        # Until the rows are drawn again, those of the place before are there.
        place = page.locator(".pane:nth-child(2) [role=document]").evaluate(SCROLLED_UP)
        return place == 0 and found.evaluate_all("rows => rows.map(row => row.click()).length") == 1

    becomes(is_clicked, True)


def selected(page: Page) -> list[str]:
    return page.locator(SELECTED).evaluate_all("rows => rows.map(row => row.dataset.item)")


def test_a_click_selects_in_every_panel(browser: Any, tmp_path: Path) -> None:
    with opened(browser, report_of_layer().html(), tmp_path) as page:
        page.locator(".kernel-row[data-item='1']").click()
        page.wait_for_selector(".outline-item[data-item='1'][aria-selected=true]")
        assert "exp2" in page.locator(".neighbourhood svg").text_content()
        assert page.locator("#details h3").inner_text().startswith("kernel_1")
        # The lines of its nodes, and the code of the kernel, which is scrolled to.
        assert page.locator(".pane .line.node").count() > 5
        page.wait_for_selector(".pane:nth-child(2) .line.own")
        page.locator("#tab-compile").click()
        assert "not part of this report" in page.locator("#details").inner_text()


def test_a_line_of_a_stage_selects_the_node_that_it_is_of(browser: Any, tmp_path: Path) -> None:
    with opened(browser, report_of_layer().html(), tmp_path) as page:
        page.locator(".pane:nth-child(1) .line", has_text="kiln.unary").locator(".gutter").click()
        page.wait_for_selector(".outline-node[aria-selected=true]")
        assert "unary exp2" in page.locator(".outline-node[aria-selected=true]").inner_text()
        becomes(lambda: selected(page), ["1"])
        becomes(lambda: page.locator(".vertex.selected").count(), 1)
        page.locator(".pane:nth-child(2) select").select_option("schedule")
        click_from_the_top(page, "func.func private @kernel_0(")
        page.wait_for_selector(".outline-item[data-item='0'][aria-selected=true]")


def test_remarks_give_the_compilers_reasons_in_the_names_of_the_graph(browser: Any, tmp_path: Path) -> None:
    with opened(browser, report_of_layer().html(), tmp_path) as page:
        page.locator(".kernel-row[data-item='1']").click()
        remarks = page.locator("#details .remark").all_inner_texts()
        (apart,) = [text for text in remarks if text.startswith("not fused")]
        assert "reduce_axis sum sums products, behind which only what walks the very same loops is computed" in apart
        assert re.search(r"and #\d+ reduce_axis max walks others\.", apart)
        page.locator(".kernel-row[data-item='0']").click()
        used = page.locator("#details dd", has_text="for vectors, of")
        used.wait_for()
        assert re.fullmatch(r"\d+ for vectors, of \d+ instructions", used.inner_text())
        assert page.locator("#details dd", has_text="with the stack").count() == 1


def test_the_roofline_has_every_kernel_and_follows_the_slider(browser: Any, tmp_path: Path) -> None:
    with opened(browser, report_of_layer().html(), tmp_path) as page:
        page.locator("#tab-roofline").click()
        points = page.locator(".roofline circle")
        becomes(points.count, 2)
        before = points.nth(0).get_attribute("cx")
        value = page.locator("[data-symbol=n]")
        value.fill("4000")
        value.press("Enter")
        becomes(lambda: points.nth(0).get_attribute("cx") != before, True)
        points.nth(1).click()
        becomes(lambda: selected(page), ["1"])
        becomes(page.locator(".roofline circle.selected").count, 1)


def test_a_node_that_is_drawn_can_be_clicked(browser: Any, tmp_path: Path) -> None:
    with opened(browser, report_of_layer().html(), tmp_path) as page:
        page.locator(".kernel-row[data-item='0']").click()
        page.locator(".vertex", has_text="permute").click()
        assert "permute" in page.locator(".outline-node[aria-selected=true]").inner_text()
        page.locator("#tab-node").click()
        assert "axes_permutation" in page.locator("#details").inner_text()


def test_the_search_finds_nodes_by_kind_number_and_type(browser: Any, tmp_path: Path) -> None:
    with opened(browser, report_of_layer().html(), tmp_path) as page:
        for words, found in (("exp2", 1), ("#7", 1), ("reduce sum", 2), ("kernel_1", 0), ("nothing like it", 0)):
            page.locator("#search").fill(words)
            becomes(page.locator(".outline-node").count, found)
        becomes(lambda: page.locator(".outline .none").count(), 1)


def test_the_keyboard_goes_everywhere(browser: Any, tmp_path: Path) -> None:
    with opened(browser, report_of_layer().html(), tmp_path) as page:
        page.keyboard.press("j")
        becomes(lambda: selected(page), ["0"])
        page.keyboard.press("j")
        becomes(lambda: selected(page), ["1"])
        page.keyboard.press("k")
        becomes(lambda: selected(page), ["0"])
        page.locator(".outline [role=tree]").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        becomes(lambda: page.locator(".outline-node[aria-selected=true]").count(), 1)
        page.keyboard.press("ArrowLeft")
        becomes(lambda: page.locator(".outline-item[aria-selected=true]").count(), 1)
        page.locator(".timeline canvas").focus()
        page.keyboard.press("ArrowRight")
        becomes(lambda: selected(page), ["1"])
        page.keyboard.press("Escape")
        becomes(lambda: selected(page), [])
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") == "search"
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        becomes(lambda: page.locator("dialog[open]").count(), 1)
        page.keyboard.press("Escape")
        becomes(lambda: page.locator("dialog[open]").count(), 0)
        # Every control can be reached, and says what it is.
        unnamed = page.evaluate(
            "[...document.querySelectorAll('button, input, select, [tabindex=\"0\"]')].filter(each => !("
            "each.getAttribute('aria-label') || each.innerText?.trim() || each.closest('label')?.innerText.trim()"
            " || each.getAttribute('aria-labelledby'))).map(each => each.outerHTML.slice(0, 120))"
        )
        assert unnamed == []


def test_a_bar_of_the_schedule_can_be_clicked_and_enlarged(browser: Any, tmp_path: Path) -> None:
    with opened(browser, report_of_layer().html(), tmp_path) as page:
        canvas = page.locator(".timeline canvas")
        box = canvas.bounding_box()
        canvas.click(position={"x": box["width"] * 0.9, "y": 40})
        becomes(lambda: selected(page), ["1"])
        canvas.click(position={"x": box["width"] * 0.1, "y": 40})
        becomes(lambda: selected(page), ["0"])
        for name in ("Larger", "Larger", "Smaller"):
            page.locator(f".timeline [aria-label={name}]").click()
        page.locator(".timeline [role=radio]", has_text="by dependencies").click()
        canvas.hover(position={"x": box["width"] * 0.1, "y": 40})
        assert "kernel_0" in page.locator(".tip").inner_text()


def test_the_table_is_sorted_by_what_is_clicked(browser: Any, tmp_path: Path) -> None:
    with opened(browser, report_of_layer().html(), tmp_path) as page:
        rows = page.locator(".kernel-row[data-item]")
        head = page.locator(".kernel-row.head button", has_text="ops/B")
        head.click()
        head.click()
        assert page.locator("[aria-sort=ascending]").inner_text() == "ops/B ↑"
        intensities = [float(each) for each in page.locator("[data-item] .c-intensity").all_inner_texts()]
        assert intensities == sorted(intensities)
        assert rows.count() == 2


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(browser: Any, tmp_path: Path, dark: bool) -> None:
    with opened(browser, report_of_layer().html(), tmp_path, dark=dark) as page:
        page.locator(".kernel-row[data-item='1']").click()
        faint = page.evaluate(CONTRAST)
        assert faint == []
        brightness = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
        assert (sum(brightness) < 3 * 128) == dark


CONTRAST = """() => {
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const colour = text => text.match(/[\\d.]+/g).map(Number);
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const found = colour(getComputedStyle(at).backgroundColor);
      if (found.length < 4 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const element of document.querySelectorAll('#app *')) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || element instanceof SVGElement || element.closest('dialog')) continue;
    const [a, b] = [light(colour(getComputedStyle(element).color)), light(behind(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) faint.push(`${element.className} ${element.textContent.slice(0, 30)} ${ratio.toFixed(2)}`);
  }
  return faint;
}"""


def test_nothing_that_is_hostile_runs(browser: Any, tmp_path: Path) -> None:
    report = report_of_layer()
    parts = {
        name: json.dumps(hostile(json.loads(part), frozenset() if name.startswith("stage") else STRUCTURE)).encode()
        for name, part in report.parts.items()
    }
    symbols = json.loads(report.parts["program"])["symbols"]
    program = json.loads(parts["program"])
    program["symbols"] = [{**symbol, "name": f"{symbol['name']}{HOSTILE}"} for symbol in symbols]
    parts["program"] = json.dumps(program).encode()
    parts |= {
        f"stage:{HOSTILE}": json.dumps(HOSTILE).encode(),
        "about": json.dumps({HOSTILE: HOSTILE}).encode(),
        "signature": json.dumps({"record": {"key": HOSTILE, "worker": HOSTILE}, "signature": HOSTILE}).encode(),
    }
    with opened(browser, page_of(parts, parts), tmp_path) as page:
        for item in ("0", "1"):
            page.locator(f".kernel-row[data-item='{item}']").click()
            for tab in ("kernel", "program", "compile"):
                page.locator(f"#tab-{tab}").click()
        page.locator(".vertex").first.click()
        page.locator("#tab-node").click()
        page.locator(".pane:nth-child(1) select").select_option(HOSTILE)
        page.locator(".pane:nth-child(1) .line", has_text="onerror").first.wait_for()
        becomes(lambda: page.locator("img").count(), 0)
        assert page.evaluate("window.attacked") is None
        assert HOSTILE.split("<img")[0] in page.title()


def test_two_programs_are_compared(browser: Any, tmp_path: Path) -> None:
    html = report_of_layer().html(against=report_of_layer("cuda:sm_90"))
    with opened(browser, html, tmp_path) as page:
        assert page.locator(".who").inner_text().count("cuda:sm_90") == 1
        page.locator(".kernel-row[data-item='0']").click()
        assert page.locator("[data-item='0'] .c-change").inner_text().endswith("%")
        page.locator(".pane:nth-child(1) select").select_option("realise")
        page.wait_for_selector(".pane:nth-child(1) .line.changed")
        assert page.locator(".pane:nth-child(2) select").input_value() == "realise"
        page.wait_for_selector(".pane:nth-child(2) .line.own")
        # Both schedules are on one axis, and an item of the other leads to the one that does the same.
        canvas = page.locator(".timeline canvas")
        assert "the other program" in canvas.get_attribute("aria-label")
        box = canvas.bounding_box()
        canvas.hover(position={"x": 8, "y": OTHER_BARS})
        becomes(lambda: "kernel_0 of the other program" in page.locator(".tip").inner_text(), True)
        page.keyboard.press("Escape")
        canvas.click(position={"x": 8, "y": OTHER_BARS})
        becomes(lambda: selected(page), ["0"])
        page.locator(".timeline [role=radio]", has_text="by dependencies").click()
        canvas.hover(position={"x": 8, "y": box["height"] / 2 + 24})
        becomes(lambda: "of the other program" in page.locator(".tip").inner_text(), True)


def test_a_line_of_the_other_program_selects_it_and_what_does_the_same_here(browser: Any, tmp_path: Path) -> None:
    html = report_of_layer().html(against=report_of_layer("cuda:sm_90"))
    with opened(browser, html, tmp_path) as page:
        other = page.locator(".pane:nth-child(2)")
        other.locator("select").select_option("from-graph")
        other.locator(".line", has_text="kiln.unary").locator(".gutter").click()
        page.wait_for_selector(".outline-node[aria-selected=true]")
        assert "unary exp2" in page.locator(".outline-node[aria-selected=true]").inner_text()
        becomes(lambda: selected(page), ["1"])
        other.locator(".line.node", has_text="kiln.unary").wait_for()
        other.locator("select").select_option("codegen")
        click_from_the_top(page, re.compile(r"\.entry kernel_0\("))
        becomes(lambda: selected(page), ["0"])
        other.locator(".line.own", has_text=".entry kernel_0").wait_for()


def test_a_kernel_that_only_the_other_program_has_is_selected_there(browser: Any, tmp_path: Path) -> None:
    alone = made_program([ItemAnalysis(item_id=0, flops=1, est_ns=1000)], {"n": (1, 4096)})
    other = report_of_layer("cuda:sm_90").parts
    with opened(browser, page_of({"program": json.dumps(alone).encode()}, other), tmp_path) as page:
        page.locator(".kernel-row[data-item='0']").click()
        theirs = page.locator(".pane:nth-child(2)")
        theirs.locator("select").select_option("codegen")
        click_from_the_top(page, re.compile(r"\.entry kernel_0\("))
        # What it computes is nowhere in this program, of which nothing is selected then.
        becomes(lambda: selected(page), [])
        theirs.locator(".line.own", has_text=".entry kernel_0").wait_for()
        theirs.locator("select").select_option("from-graph")
        theirs.locator(".line", has_text="kiln.unary").locator(".gutter").click()
        becomes(lambda: selected(page), ["0"])


def test_the_page_runs_in_the_sandbox_that_a_service_puts_it_in(browser: Any) -> None:
    said: list[str] = []
    policies = [SAFE_HEADERS["Content-Security-Policy"], f"{content_security_policy()}; sandbox allow-scripts"]
    page = browser.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.route(
        "**/*",
        lambda route: route.fulfill(
            body=report_of_layer().html(),
            headers={"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": ", ".join(policies)},
        ),
    )
    page.goto("http://kiln.test/programs/report")
    page.locator(".kernel-row[data-item='1']").click()
    page.wait_for_selector(".pane:nth-child(2) .line.own")
    assert page.evaluate("window.origin") == "null"
    assert said == []
    page.close()


def test_a_page_is_timed_until_it_has_answered_a_click(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(report_of_layer().html())
    assert opening_ms(browser, tmp_path / "report.html") > 0
