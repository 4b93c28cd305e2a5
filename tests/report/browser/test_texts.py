"""The page shows each text of a stage as it was given, however it is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tensorkiln.report import Report
from tensorkiln.report.page import PLAIN_BYTES
from tests.chromium import Page, becomes
from tests.report.browser.opened import opened
from tests.report.programs import HOSTILE, compiled_layer

pytestmark = pytest.mark.xdist_group("chromium")

FILL = "wide " * 90 + "."  # The page drops white space at the end of a text.
NUMBERS = "007 0 1.50 -3 x12y9 999999999999999 1000000000000000 99999999999999999999"
LINES = """lines => lines.map(line => {
  const text = line.textContent.slice(line.dataset.line.length);
  return [line.dataset.line, Array.from({length: text.length}, (_, at) => text.charCodeAt(at))];
})"""
"""As UTF-16, because what speaks to the browser knows no halves of surrogate pairs."""


def utf_16(text: str) -> str:
    """The text with a character for each unit of UTF-16."""
    return "".join(map(chr, memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")))


def shown(page: Page, stage: str, count: int) -> list[str]:
    """The lines of the left pane, which has `count` of them, scrolled from the first to the last."""
    pane = page.locator(".pane:nth-child(1)")
    pane.locator("select").select_option(stage)
    rows = pane.locator(f"[role=document][aria-label='Text of {stage}']")
    rows.wait_for()
    found: dict[int, str] = {}

    def is_all() -> bool:
        first = next((line for line in range(1, count + 1) if line not in found), count)
        rows.evaluate("(rows, top) => { rows.scrollTop = top }", 17 * (first - 1))
        found.update((int(line), "".join(map(chr, units))) for line, units in rows.locator(".line").evaluate_all(LINES))
        return len(found) == count

    becomes(is_all, True)
    return [found[line] for line in sorted(found)]


def test_every_text_is_shown_as_it_was_given(browser: Any, tmp_path: Path) -> None:
    made = compiled_layer()
    lines = [f"{at} {HOSTILE} <!-- {NUMBERS} {7 * at} {FILL}" for at in range(200)]
    texts = {
        "realise": "\n".join(lines),
        "lower": "\n".join(f"{line}\r" for line in lines) + "\nend",
        "entries": "\n".join(f"{line}\0" for line in lines),
        "translate": "\n".join(f"%{at} \ud800 \udfff\U0001f600 {FILL}" for at in range(200)),
        "schedule": f"{HOSTILE}\r\n{NUMBERS}\0\ud800\nend",
    }
    assert [len(text) > PLAIN_BYTES for text in texts.values()] == [True, True, True, True, False]
    html = Report.of(made.program, stages=texts).html()
    with opened(browser, html, tmp_path) as page:
        for stage, text in texts.items():
            assert shown(page, stage, text.count("\n") + 1) == utf_16(text).split("\n")
        assert page.evaluate("window.attacked") is None
