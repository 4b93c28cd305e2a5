"""The page about ONNX lists every operator, and its example runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tensorkiln.frontends.onnx import DOMAINS, OPERATORS

PAGE = (Path(__file__).parents[3] / "docs" / "onnx.md").read_text()


def test_the_operators_on_the_page_are_those_of_the_importer():
    listed = re.search(r"## Operators\n\n(.*?)\n\n", PAGE, re.DOTALL)
    assert listed is not None
    assert listed[1].split() == sorted(OPERATORS)


@pytest.mark.parametrize("domain", sorted(DOMAINS.keys() - {""}))
def test_the_operators_of_a_domain_on_the_page_are_those_of_the_importer(domain: str):
    listed = re.search(rf"Of the domain `{re.escape(domain)}`: ([^.]*)\.\n", PAGE)
    assert listed is not None
    assert listed[1].split() == sorted(DOMAINS[domain])


def test_the_example_runs():
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(example, "docs/onnx.md", "exec"), {})
