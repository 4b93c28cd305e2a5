"""Words that make a sentence a riddle are in no page, in no message of the service or the SDK, and in no test name."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.snippets import ROOT

from .test_docs import PAGES, name_of

RIDDLES = re.compile(
    r"\b(?:"
    # Somebody without a name: a process, a worker, a caller or a user has one.
    r"whoever|those who|who is at|what (?:none|nobody)|"
    # What happened, in a way that has to be guessed.
    r"that is none|comes? to (?:its|their) end|what (?:it|they|that|the \w+) comes? to|came of it|met a defect|"
    r"(?:kept|needed|wanted) no more|neither takes nor|leads nowhere|had again|from which on|signs? of life|"
    # "is not a dtype" is read once.
    r"(?<!there )(?:is|are) no (?:array|dimension|dtype|file|function|half|identifier|index|JSON|key of|kernel|list|"
    r"literal|module|name of|number|object|operand|program|repository|setting|sum|tag|tensor|tuple)"
    r")\b",
    re.IGNORECASE,
)


SCRIPTS = [
    *sorted((ROOT / "service/pages").glob("*.js")),
    *sorted((ROOT / "examples").glob("*.sh")),
    *(ROOT / name for name in (".ci/run", ".ci/wheels", "docker/release", "docker/run-in-debian-root")),
]


@pytest.mark.parametrize("page", [*PAGES, *SCRIPTS], ids=name_of)
def test_a_page_says_who_and_what(page: Path) -> None:
    text = " ".join(page.read_text("utf-8").split())
    assert [text[found.start() - 40 : found.end() + 40] for found in RIDDLES.finditer(text)] == []


@pytest.mark.parametrize("folder", ["client/tensorkiln", "service", "passes", "stablehlo"])
def test_a_message_says_who_and_what(folder: str) -> None:
    found: list[str] = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        text = path.read_text("utf-8")
        if RIDDLES.search(text):
            nodes = list(ast.walk(ast.parse(text)))
            said = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
            for node in nodes:
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
                    found += [f"{path}: {node.value}"] if RIDDLES.search(node.value) else []
    assert found == []


def test_the_name_of_a_test_names_its_unit() -> None:
    names = re.compile(r"^(?:async )?def (test_(?:what|who|whoever|whatever|nobody)_\w*)", re.MULTILINE)
    found = {path: names.findall(path.read_text("utf-8")) for path in sorted((ROOT / "tests").rglob("test_*.py"))}
    assert {str(path): riddles for path, riddles in found.items() if riddles} == {}
