"""The pages of a service: for everybody, without a script or a style in them, and without data."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import service
from service.identity.authenticator import EXPLORE, PAGES, START
from service.routes.pages import LINKS, POLICY, explore_policy
from tensorkiln.report.page import content_security_policy
from tests.identity.guarded import Guarded, refusal
from tests.service.server import Server

pytestmark = pytest.mark.xdist_group("pages")
FOLDER = Path(service.__file__).parent / "pages"
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
MARKUP = re.compile(
    r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|new Function|setAttribute\(.on|srcdoc|javascript:"
    r"|localStorage|sessionStorage|createContextualFragment|DOMParser)\b"
)


class Elements(HTMLParser):
    """The elements of a page, with their attributes, and the text inside of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] in ("script", "style") and data.strip():
            self.inline.append(data)


def test_the_root_answers_a_browser_with_a_page_and_others_with_json(open_service: Server) -> None:
    page = open_service.http.get(START, headers=HTML)
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "<h1>tensorkiln</h1>" in page.text
    plain = open_service.http.get(START)
    assert plain.json()["links"] == LINKS
    for answer in (page, plain):
        assert "accept" in answer.headers["vary"].lower()
    again = open_service.http.get(START, headers={**HTML, "If-None-Match": page.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_every_link_of_the_root_is_a_route(open_service: Server) -> None:
    statuses = {path: open_service.http.get(path).status_code for path in LINKS.values()}
    assert statuses == dict.fromkeys(LINKS.values(), 200) | {"/compile": 405}


@pytest.mark.parametrize("path", sorted(PAGES))
def test_a_file_has_the_strict_policy(open_service: Server, path: str) -> None:
    answer = open_service.http.get(path, headers=HTML)
    assert answer.status_code == 200
    policy = explore_policy() if path == EXPLORE else POLICY
    assert policy in answer.headers.get_list("content-security-policy")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "unsafe" not in policy


def test_the_page_that_shows_reports_allows_their_script_and_style_and_no_other() -> None:
    added = set(re.split("[; ]+", explore_policy())) - set(re.split("[; ]+", POLICY))
    assert added == set(re.findall("'sha256-[^']*'", content_security_policy()))
    assert len(added) == 2
    assert re.sub(" 'sha256-[^']*'", "", explore_policy()) == POLICY


def test_a_page_has_no_script_or_style_of_its_own_and_loads_files_that_are_there() -> None:
    for name in ("start.html", "explore.html"):
        elements = Elements((FOLDER / name).read_text("utf-8"))
        assert elements.inline == []
        for tag, attributes in elements.found:
            assert not [each for each in attributes if each.startswith("on") or each == "style"], (name, tag)
            for each in ("src", "href"):
                stated = attributes.get(each) or ""
                if stated and tag in ("script", "link") and not stated.startswith("data:"):
                    assert stated in PAGES


def test_scripts_make_text_of_what_they_are_told_and_keep_no_key() -> None:
    frame = """  made.sandbox = "allow-scripts";
  made.title = title;
  made.srcdoc = html;
"""
    for path in FOLDER.glob("*.js"):
        text = path.read_text("utf-8")
        if path.name == "show.js":
            # The one place where text becomes a page, which is confined before it is there.
            assert text.count(frame) == 1
            text = text.replace(frame, "")
        assert MARKUP.findall(text) == [], path.name


def test_a_guarded_service_shows_its_pages_and_nothing_else(tmp_path: Path) -> None:
    with Guarded(tmp_path) as guarded:
        for path in PAGES:
            assert guarded.http.get(path, headers=HTML).status_code == 200
        assert refusal(guarded.send(None, "GET", "/programs/" + "0" * 64)) == (401, "auth.missing")
        assert refusal(guarded.send(None, "GET", "/pages/../settings")) == (401, "auth.missing")
        assert guarded.send(guarded.key("pages"), "POST", EXPLORE, b"{}").status_code == 405
