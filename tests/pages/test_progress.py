"""What `/explore` shows of a job is what its events say, in their order; what comes late is not shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.chromium import becomes
from tests.contract.wire import DOUBLE
from tests.pages.test_in_a_browser import opened, told
from tests.service.server import Server

pytestmark = pytest.mark.xdist_group("pages")

TARGETS = ("cpu", "cuda:sm_90")


def events_of(service: Server, job: str) -> list[dict[str, Any]]:
    """All events of a job that has ended, in the order of their numbers."""
    found: list[dict[str, Any]] = []
    for part in service.http.get(f"/jobs/{job}/events").text.replace("\r\n", "\n").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in part.split("\n") if ": " in line)
        if "event" in fields:
            found.append({**json.loads(fields.get("data") or "null"), "kind": fields["event"]})
    return found


def at_once(route: Any) -> None:
    """Have the service answer before the compile ends."""
    route.continue_(headers={**route.request.headers, "prefer": "respond-async, wait=0"})


def shown(event: dict[str, Any]) -> str:
    target = event.get("target")
    return f"{event.get('stage', event['kind'])}{'' if target is None else f' (target {target})'}"


def test_every_event_of_a_job_is_shown_in_order(browser: Any, open_service: Server) -> None:
    with opened(browser, f"{open_service.url}/explore") as page:
        page.wait_for_selector("#targets option")
        page.route("**/compile", at_once)
        page.select_option("#targets", list(TARGETS))
        page.fill(
            "#source",
            json.dumps({**DOUBLE, "name": "progress", "symbolic_vars": [{"name": "n", "min_val": 1, "max_val": 777}]}),
        )
        with page.expect_response(lambda answer: answer.request.method == "POST") as answered:
            page.click("#compile")
        assert answered.value.status == 202
        job = answered.value.json()["id"]
        page.wait_for_selector("#compile:not([disabled])")
        events = events_of(open_service, job)
        assert [event["kind"] for event in events[:2]] == ["queued", "started"]
        assert events[-1]["kind"] == "done"
        assert told(page) == [shown(event) for event in events]
        programs = open_service.http.get(f"/jobs/{job}").json()["programs"]
        for at, program in enumerate(programs):
            stages = [event["stage"] for event in events if event["kind"] == "stage" and event.get("target") == at]
            names = [stage["name"] for stage in program["stages"]]
            assert [stage for stage in stages if stage in names] == names
        assert page.locator("article").count() == len(TARGETS)


def test_a_report_that_comes_late_is_not_shown(browser: Any, open_service: Server) -> None:
    with opened(browser, f"{open_service.url}/explore") as page:
        page.wait_for_selector("#targets option")
        late: list[Any] = []
        page.route("**/report", lambda route: route.continue_() if late else late.append(route))
        page.select_option("#targets", list(TARGETS))
        page.fill("#source", json.dumps(DOUBLE))
        page.click("#compile")
        becomes(lambda: page.locator("article").count() + len(late), len(TARGETS) + 1)
        title = page.locator("#report h2")
        page.locator("article").nth(1).locator("button", has_text="report").click()
        becomes(title.all_inner_texts, ["Report of double for sm_90"])
        with page.expect_response("**/report") as answered:
            late[0].continue_()
        answered.value.finished()
        page.wait_for_selector("#compile:not([disabled])")
        assert title.all_inner_texts() == ["Report of double for sm_90"]


def test_a_program_that_comes_late_is_not_shown(browser: Any, open_service: Server) -> None:
    with opened(browser, f"{open_service.url}/explore") as page:
        page.wait_for_selector("#targets option")
        digests: list[str] = []
        for size in (11, 12):
            page.fill(
                "#source", json.dumps({**DOUBLE, "symbolic_vars": [{"name": "n", "min_val": 1, "max_val": size}]})
            )
            page.click("#compile")
            becomes(lambda: page.evaluate("location.hash.slice(1)") not in ("", *digests), True)
            page.wait_for_selector("#compile:not([disabled])")
            digests.append(page.evaluate("location.hash.slice(1)"))
        late: list[Any] = []
        page.route(f"**/programs/{digests[0]}", lambda route: late.append(route))
        page.evaluate("digest => { location.hash = digest }", digests[0])
        becomes(lambda: page.locator("#compile").count() * len(late), 1)
        page.evaluate("digest => { location.hash = digest }", digests[1])
        becomes(lambda: digests[1] in page.inner_text("#result"), True)
        page.wait_for_selector("#compile:not([disabled])")
        with page.expect_response(f"**/programs/{digests[0]}") as answered:
            late[0].continue_()
        answered.value.finished()
        page.evaluate("() => new Promise(requestAnimationFrame)")
        assert digests[0] not in page.inner_text("#result")
        assert digests[1] in page.inner_text("#result")
