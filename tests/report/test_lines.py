"""Long texts are kept as the shapes of their lines, and come back exactly."""

from __future__ import annotations

import json
from itertools import accumulate

import pytest

from tensorkiln.report.lines import as_lines
from tensorkiln.report.page import page
from tests.report.programs import compiled_layer, long_chain, long_texts

UNUSUAL = {
    "ends of lines": "a 1\r\nb 2\r\n\n\r3\n",
    "numbers": "007 0 00 1.50 -3 x12y9 999999999999999 1000000000000000 99999999999999999999 ٣ 1e308\n",
    "closing": "</script><!--<script> 1 ]]> &lt;\u2028\u2029\n",
    "surrogates": "\ud800 1 \udfff \U0001f600\n",
    "escapes": '\\u0000 1 \\" "\n',
}


def read(written: bytes) -> str:
    """What `lines.ts` makes of it."""
    content = json.loads(written)
    rows = [iter(zip(*map(accumulate, columns), strict=True)) if columns else None for _, *columns in content["shapes"]]
    texts: list[str] = []
    for at in content["lines"]:
        first, *others = content["shapes"][at][0].split("\0")
        row = rows[at]
        numbers = () if row is None else next(row)
        texts.append(first + "".join(f"{number}{other}" for number, other in zip(numbers, others, strict=True)))
    return "\n".join(texts)


@pytest.mark.parametrize("text", UNUSUAL.values(), ids=UNUSUAL)
def test_an_unusual_text_comes_back(text: str) -> None:
    written = as_lines(text * 5)
    assert written is not None
    assert read(written) == text * 5


def test_the_texts_of_stages_come_back() -> None:
    for text in compiled_layer().dumps.values():
        written = as_lines(text * 2)
        assert written is None or read(written) == text * 2


@pytest.mark.parametrize("text", ["", "a\0 1\n" * 9, "\n".join(chr(97 + at) for at in range(9))])
def test_a_text_that_would_gain_nothing_stays_as_it_is(text: str) -> None:
    assert as_lines(text) is None


def test_a_page_of_10_000_nodes_with_long_texts_is_small() -> None:
    parts = long_chain(2500, 4)
    texts = long_texts(10_000)
    assert sum(map(len, texts.values())) > 10_000_000
    assert len(page(parts | texts)) < 2_000_000
