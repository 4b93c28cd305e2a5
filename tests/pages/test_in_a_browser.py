"""`/` and `/explore` in Chromium: what is compiled is shown, and names that are markup elsewhere stay names."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tensorkiln import Client
from tensorkiln.options import CompileOptions
from tensorkiln.program import Program
from tensorkiln.trust.record import SignedRecord
from tests.chromium import PATIENCE_MS, becomes
from tests.contract.wire import DOUBLE
from tests.identity.guarded import Guarded
from tests.report.browser.opened import opened as opened_report
from tests.service.failing import STAGE, failing
from tests.service.server import Server, await_end

pytestmark = pytest.mark.xdist_group("pages")

HOSTILE = "</script><img src=x onerror=pwned=1><svg/onload=pwned=1>\"'`${pwned=1}"


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
    placeholder, add = DOUBLE["nodes"]
    yield {**DOUBLE, "name": HOSTILE}
    yield {**DOUBLE, "schema": HOSTILE}
    yield {**DOUBLE, HOSTILE: 1}
    yield {**DOUBLE, "symbolic_vars": [{"name": HOSTILE, "min_val": 1, "max_val": 4}]}
    yield {**DOUBLE, "input_vars": [HOSTILE]}
    yield {**DOUBLE, "output_vars": [HOSTILE]}
    for name in placeholder:
        yield {**DOUBLE, "nodes": [{**placeholder, name: HOSTILE}, add]}
    yield {**DOUBLE, "nodes": [{**placeholder, "shape": [HOSTILE]}, add]}
    for name in add:
        yield {**DOUBLE, "nodes": [placeholder, {**add, name: HOSTILE}]}


def test_the_first_page_says_what_the_service_can_do(browser: Any, open_service: Server) -> None:
    with opened(browser, f"{open_service.url}/") as page:
        page.wait_for_selector("text=waiting")
        assert "cuda:sm_90" in page.inner_text("#target-list")
        assert "Build" in page.inner_text("#facts")


def test_a_graph_is_compiled_looked_into_and_found_again_by_its_link(browser: Any, open_service: Server) -> None:
    with opened(browser, f"{open_service.url}/explore") as page:
        shown = compiled(page, DOUBLE)
        assert "kernel_0" in shown
        page.click("button:has-text('from-graph')")
        page.wait_for_selector("article pre")
        assert "kiln." in page.inner_text("article pre")
        link = page.url
        assert len(link.split("#")[1]) == 64
    with opened(browser, link) as page:
        page.wait_for_selector("article")
        assert link.split("#")[1] in page.inner_text("#result")


def broken(how: str) -> dict[str, Any]:
    """The graph whose compile fails in the way that has this name."""
    return json.loads(failing(json.dumps({"graph": DOUBLE}).encode(), how))["graph"]


def told(page: Any) -> list[str]:
    """The events of the job that are shown."""
    return page.locator("#progress li").all_inner_texts()


def test_a_compile_that_is_cancelled_ends_with_its_process(browser: Any, open_service: Server) -> None:
    with opened(browser, f"{open_service.url}/explore") as page:
        page.wait_for_selector("#targets option")
        assert page.is_hidden("#cancel")
        page.fill("#source", json.dumps(broken("hang")))
        with page.expect_response(lambda answer: answer.request.method == "POST") as answered:
            page.click("#compile")
        becomes(lambda: told(page)[-1:], [f"{STAGE} (target 0)"])
        (process,) = open_service.jobs("compile")
        page.click("#cancel")
        page.wait_for_selector("#compile:not([disabled])")
        assert "job.cancelled" in page.inner_text("#result")
        assert told(page)[-1] == "done"
        assert page.is_hidden("#cancel")
        await_end(process)
        job = answered.value.json()["id"]
        assert open_service.http.get(f"/jobs/{job}").json()["state"] == "cancelled"
        # And the next one is compiled.
        assert "kernel_0" in compiled(page, DOUBLE)


def test_a_compile_can_be_cancelled_while_a_stored_program_is_looked_at(browser: Any, open_service: Server) -> None:
    (stored,) = open_service.post("/compile", json.dumps({"graph": DOUBLE, "target": "cpu"}).encode()).json()[
        "programs"
    ]
    with opened(browser, f"{open_service.url}/explore") as page:
        page.wait_for_selector("#targets option")
        page.fill("#source", json.dumps(broken("hang")))
        with page.expect_response(lambda answer: answer.request.method == "POST") as answered:
            page.click("#compile")
        becomes(lambda: told(page)[-1:], [f"{STAGE} (target 0)"])
        (process,) = open_service.jobs("compile")
        page.evaluate(f"location.hash = '#{stored['digest']}'")
        page.wait_for_selector("#report:not([hidden]) iframe")
        assert stored["digest"] in page.inner_text("#result")
        assert page.is_visible("#cancel")
        assert page.is_disabled("#compile")
        page.click("#cancel")
        page.wait_for_selector("#compile:not([disabled])")
        assert page.is_hidden("#cancel")
        await_end(process)
        assert open_service.http.get(f"/jobs/{answered.value.json()['id']}").json()["state"] == "cancelled"
        # The program stays in sight.
        assert stored["digest"] in page.inner_text("#result")
        assert page.url.endswith(stored["digest"])


def test_a_compile_that_ends_while_a_stored_program_is_looked_at_leaves_a_link(
    browser: Any, open_service: Server
) -> None:
    (stored,) = open_service.post("/compile", json.dumps({"graph": DOUBLE, "target": "cpu"}).encode()).json()[
        "programs"
    ]
    with opened(browser, f"{open_service.url}/explore") as page:
        page.wait_for_selector("#targets option")
        page.route(
            "**/compile", lambda route: (page.evaluate(f"location.hash = '#{stored['digest']}'"), route.continue_())
        )
        page.fill("#source", json.dumps({**DOUBLE, "name": "later", "output_vars": [1, 0]}))
        page.click("#compile")
        page.wait_for_selector("#progress a")
        assert stored["digest"] in page.inner_text("#result")
        assert told(page) == ["compiled: later"]
        page.click("#progress a")
        becomes(lambda: page.url.endswith(stored["digest"]), False)
        becomes(lambda: page.locator("article").count(), 1)
        assert stored["digest"] not in page.inner_text("#result")
        assert page.is_enabled("#compile")


def test_every_option_of_a_compile_can_be_chosen(browser: Any, open_service: Server) -> None:
    with opened(browser, f"{open_service.url}/explore") as page:
        page.wait_for_selector("#targets option")
        for name in ("fast_math", "no_fusion", "cubin"):
            page.check(f"#{name}")
        page.select_option("#schedule", "none")
        page.fill("#tuned", "prefer")
        page.fill("#source", json.dumps(DOUBLE))
        with page.expect_request(lambda request: request.method == "POST") as asked:
            page.click("#compile")
        page.wait_for_selector("article")
        chosen = CompileOptions(
            fast_math=True, dump_stages=True, cubin=True, fusion=False, schedule="none", tuned="prefer"
        )
        assert json.loads(asked.value.post_data)["options"] == chosen.model_dump(mode="json")
        record = open_service.http.get(f"/programs/{page.url.split('#')[1]}/signature").json()["record"]
        assert chosen.is_answered_by(record["request"]["options"])
        offered = page.locator("#tunings option").evaluate_all("options => options.map(each => each.value)")
        pattern = CompileOptions.model_json_schema()["properties"]["tuned"]["pattern"]
        assert all(re.fullmatch(pattern, each) for each in offered)
        assert len(offered) == pattern.count("|")


def test_the_report_says_why_it_was_compiled_who_signed_it_and_what_made_it(
    browser: Any, open_service: Server, tmp_path: Path
) -> None:
    def compile_it() -> tuple[Program, SignedRecord, str]:
        with Client(open_service.url, cache_dir=tmp_path / "cache") as client:
            client.compile(DOUBLE)
            made = client.compile(DOUBLE, options={"fast_math": True})
            return made, client.signature(made.compiled.digest), client.report(made.compiled, graph=DOUBLE).html()

    # In a thread of its own: that of a browser has a loop that runs.
    with ThreadPoolExecutor(1) as apart:
        loaded, signed, html = apart.submit(compile_it).result()
    program = loaded.compiled
    made, record, cache = program.provenance, signed.record, program.cache
    assert (cache.status, cache.differs) == ("miss", ("options.fast_math",))
    expected = {
        "digest": program.digest,
        "cache": f"miss: {cache.reason}",
        "nearest": cache.nearest,
        "differs in": "options.fast_math",
        "build": made.build_id,
        "isolation": made.isolation,
        "versions": ", ".join(f"{name} {version}" for name, version in made.versions.items()),
        "signature": signed.signature,
        "key": record.key,
        "compiled by": record.worker,
        "at": datetime.fromtimestamp(record.issued_at, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
    }
    assert all((cache.reason, *expected.values()))
    assert loaded.report().parts["signature"] == signed.to_json()
    with opened_report(browser, html, tmp_path) as page:
        page.locator("#tab-compile").click()
        facts = page.locator("#details dt").all_inner_texts()
        shown = dict(zip(facts, page.locator("#details dd").all_inner_texts(), strict=True))
        assert {name: shown[name] for name in expected} == expected
        assert shown.get("flags", "") == " ".join(made.flags)
        assert json.loads(shown["options"]) == record.request.options
        times = page.locator("#details tbody tr td:first-child").all_inner_texts()
        assert times == [stage.name for stage in program.stages]


def test_the_report_is_shown_as_the_compile_ends_in_a_frame_that_reaches_nothing(
    browser: Any, open_service: Server
) -> None:
    with opened(browser, f"{open_service.url}/explore") as page:
        compiled(page, DOUBLE)
        page.wait_for_selector("#report:not([hidden]) iframe")
        (frame,) = [each for each in page.frames if each is not page.main_frame]
        frame.wait_for_selector(".kernel-row[data-item='0']").click()
        frame.wait_for_selector(".pane .line.node")
        assert frame.evaluate("window.origin") == "null"
        assert frame.evaluate("(() => { try { return parent.document.title } catch { return '' } })()") == ""


def test_modules_validate_and_explain(browser: Any, open_service: Server) -> None:
    with opened(browser, f"{open_service.url}/explore") as page:
        assert "float32[n]" in compiled(page, DOUBLE, "validate")
        assert "stored" in compiled(page, DOUBLE, "explain")
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
    with opened(browser, f"{open_service.url}/explore", refused=2) as page:
        page.wait_for_selector("#targets option")
        page.check("input[value=stablehlo]")
        page.check("input[value=graph]")
        page.fill("#tuned", HOSTILE)
        assert "request.invalid" in compiled(page, DOUBLE)
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
        assert "auth.missing" in compiled(page, DOUBLE)
        page.fill("#key", guarded.key("explore"))
        assert "kernel_0" in compiled(page, DOUBLE)
        assert page.evaluate("localStorage.length + sessionStorage.length + document.cookie.length") == 0
