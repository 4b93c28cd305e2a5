"""The glossary explains the words that the manual uses, each of them once."""

from __future__ import annotations

import re

from tests.snippets import ROOT

from .test_docs import PAGES

GLOSSARY = ROOT / "docs" / "glossary.md"
_, *ROWS = (line.split(" | ") for line in GLOSSARY.read_text("utf-8").splitlines() if line.startswith("| "))
WORDS = [word for row in ROWS for word in row[0].removeprefix("| ").split(", ")]
EXPECTED = {
    *("graph", "node", "var", "symbol", "target", "program", "bundle", "kernel", "schedule", "stage"),
    *("lease", "job", "tenant", "digest", "signature", "artifact", "worker", "report"),
}


def test_the_words_that_a_user_meets_first_are_explained() -> None:
    assert set(WORDS) >= EXPECTED


def test_every_word_is_there_once_in_its_place_with_a_sentence_and_a_link() -> None:
    firsts = [row[0] for row in ROWS]
    assert firsts == sorted(set(firsts), key=str.casefold)
    for _, meaning, more in ROWS:
        assert meaning.endswith((".", ")")), meaning
        assert re.search(r"\]\(\w+\.md(#[\w-]+)?\)", more), more


def test_every_word_is_used_elsewhere() -> None:
    pages = [page for page in PAGES if page.parent == ROOT / "docs" and page != GLOSSARY]
    text = " ".join(" ".join(page.read_text("utf-8").split()) for page in pages).casefold()
    assert [word for word in WORDS if not re.search(rf"\b{re.escape(word.casefold())}", text)] == []
