"""The page about writing graphs names everything that is public, and its examples run."""

from __future__ import annotations

import re
from pathlib import Path

from tensorkiln import build

PAGE = (Path(__file__).parents[2] / "docs" / "build.md").read_text()


def test_every_public_name_is_on_the_page():
    prose = re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)
    named = set(re.findall(r"[A-Za-z_0-9]+", " ".join(re.findall(r"`([^`]+)`", prose))))
    assert set(build.__all__) - named == set()


def test_every_name_in_the_table_exists():
    rows = [row.split("|")[2] for row in PAGE.splitlines() if row.startswith("|")][2:]
    functions = {name for row in rows for entry in re.findall(r"`([^`]+)`", row) for name in entry.split()}
    methods = {name for row in rows for entry in re.findall(r"\*([^*]+)\*", row) for name in entry.split()}
    assert functions - set(build.__all__) == set()
    assert methods - set(dir(build.Tensor)) == set()


def test_the_examples_run():
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(examples) == 3
    for example in examples:
        exec(compile(example, "docs/build.md", "exec"), {})
