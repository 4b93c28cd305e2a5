"""`/` and `/explore` in Chromium: what is compiled is shown, and names that are markup elsewhere stay names."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.chromium import PATIENCE_MS
from tests.identity.guarded import Guarded
from tests.service.server import Server

pytestmark = pytest.mark.xdist_group("pages")

HOSTILE = "</script><img src=x onerror=pwned=1><svg/onload=pwned=1>\"'`${pwned=1}"
GRAPH: dict[str, Any] = {
    "schema": 1,
    "name": "double",
    "nodes": [
        {"node": "placeholder", "out_var": 0, "dtype": "float32", "shape": ["n"]},
        {"node": "binop", "op": "add", "a_var": 0, "b_var": 0, "out_var": 1, "dtype": "float32"},
    ],
    "input_vars": [0],
    "output_vars": [1],
    "symbolic_vars": [{"name": "n", "min_val": 1, "max_val": 4096}],
}


@contextmanager
def opened(browser: Any, url: str, refused: int | None = 0) -> Generator[Any]:
    """A page. It runs nothing that it should not, asks nobody else, and as many requests as stated are refused."""
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_MS)
    errors: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: errors.append("a dialog"))
    try:
        page.goto(url)
        yield page
        assert page.evaluate("typeof pwned") == "undefined"
        assert page.query_selector("img, svg, iframe:not([sandbox='allow-scripts'])") is None
        assert [text for text in errors if "Failed to load resource" not in text] == []
        assert refused is None or len(errors) == refused, errors
        origin = url.split("/", 3)[:3]
        assert [each for each in asked if each.split("/", 3)[:3] != origin and not each.startswith("data:")] == []
    finally:
        page.close()


def compiled(page: Any, graph: dict[str, Any], button: str = "compile") -> str:
    """The result that is shown."""
    page.wait_for_selector("#targets option")
    page.fill("#source", json.dumps(graph))
    page.click(f"#{button}")
    page.wait_for_selector(f"#{button}:not([disabled])")
    return page.inner_text("#result")


def hostile_graphs() -> Iterator[dict[str, Any]]:
    placeholder, add = GRAPH["nodes"]
    yield {**GRAPH, "name": HOSTILE}
    yield {**GRAPH, "schema": HOSTILE}
    yield {**GRAPH, HOSTILE: 1}
    yield {**GRAPH, "symbolic_vars": [{"name": HOSTILE, "min_val": 1, "max_val": 4}]}
    yield {**GRAPH, "input_vars": [HOSTILE]}
    yield {**GRAPH, "output_vars": [HOSTILE]}
    for name in placeholder:
        yield {**GRAPH, "nodes": [{**placeholder, name: HOSTILE}, add]}
    yield {**GRAPH, "nodes": [{**placeholder, "shape": [HOSTILE]}, add]}
    for name in add:
        yield {**GRAPH, "nodes": [placeholder, {**add, name: HOSTILE}]}


def test_the_first_page_says_what_the_service_can_do(browser: Any, open_service: Server) -> None:
    with opened(browser, f"{open_service.url}/") as page:
        page.wait_for_selector("text=waiting")
        assert "cuda:sm_90" in page.inner_text("#target-list")
        assert "Build" in page.inner_text("#facts")


def test_a_graph_is_compiled_looked_into_and_found_again_by_its_link(browser: Any, open_service: Server) -> None:
    with opened(browser, f"{open_service.url}/explore") as page:
        shown = compiled(page, GRAPH)
        assert "kernel_0" in shown
        assert "done" in page.inner_text("#progress") or "kernel_0" in shown
        page.click("button:has-text('from-graph')")
        page.wait_for_selector("article pre")
        assert "kiln." in page.inner_text("article pre")
        link = page.url
        assert len(link.split("#")[1]) == 64
    with opened(browser, link) as page:
        page.wait_for_selector("article")
        assert link.split("#")[1] in page.inner_text("#result")


def test_the_report_is_shown_as_the_compile_ends_in_a_frame_that_reaches_nothing(
    browser: Any, open_service: Server
) -> None:
    with opened(browser, f"{open_service.url}/explore") as page:
        compiled(page, GRAPH)
        page.wait_for_selector("#report:not([hidden]) iframe")
        (frame,) = [each for each in page.frames if each is not page.main_frame]
        frame.wait_for_selector(".kernel-row[data-item='0']").click()
        frame.wait_for_selector(".pane .line.node")
        assert frame.evaluate("window.origin") == "null"
        assert frame.evaluate("(() => { try { return parent.document.title } catch { return '' } })()") == ""


def test_modules_validate_and_explain(browser: Any, open_service: Server) -> None:
    with opened(browser, f"{open_service.url}/explore") as page:
        assert "float32[n]" in compiled(page, GRAPH, "validate")
        assert "stored" in compiled(page, GRAPH, "explain")
        page.check("input[value=stablehlo]")
        page.fill("#source", "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }")
        page.fill("#dims", "0.0=1:8")
        page.click("#validate")
        page.wait_for_selector("#result dd:has-text('float32[')")


def test_lines_of_the_builder_are_compiled_and_a_mistake_is_shown_at_its_line(
    browser: Any, open_service: Server
) -> None:
    with opened(browser, f"{open_service.url}/explore", refused=1) as page:
        page.wait_for_selector("#targets option")
        page.check("input[value=builder]")
        page.click("#compile")
        page.wait_for_selector("article")
        assert "float32[n, 64]" in page.inner_text("#result")
        page.fill("#source", f"b = Builder({HOSTILE!r})")
        page.click("#validate")
        page.wait_for_selector("#result .problem")
        assert "line 1, column 5" in page.inner_text("#result")


def test_names_that_are_markup_stay_names_in_every_field(browser: Any, open_service: Server) -> None:
    with opened(browser, f"{open_service.url}/explore", refused=None) as page:
        for graph in hostile_graphs():
            for button in ("compile", "validate"):
                assert compiled(page, graph, button).strip()
    with opened(browser, f"{open_service.url}/explore", refused=1) as page:
        page.wait_for_selector("#targets option")
        page.check("input[value=stablehlo]")
        for dims in (HOSTILE, "0.0=1:8"):
            page.fill("#source", HOSTILE)
            page.fill("#dims", dims)
            page.click("#validate")
            page.wait_for_selector("#result .problem")
            page.wait_for_selector("#validate:not([disabled])")
    with opened(browser, f"{open_service.url}/explore#{HOSTILE}") as page:
        page.wait_for_selector("#targets option")


def test_a_key_is_asked_for_and_works(browser: Any, tmp_path: Any) -> None:
    with Guarded(tmp_path) as guarded, opened(browser, f"{guarded.url}/explore", refused=1) as page:
        assert "auth.missing" in compiled(page, GRAPH)
        page.fill("#key", guarded.key("explore"))
        assert "kernel_0" in compiled(page, GRAPH)
        assert page.evaluate("localStorage.length + sessionStorage.length + document.cookie.length") == 0
