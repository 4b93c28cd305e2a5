"""The page about tinygrad lists every operation, and its examples run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorkiln.frontends.tinygrad import FAMILIES
from tests.snippets import ROOT, blocks

PAGE = ROOT / "docs" / "tinygrad.md"


def test_the_operations_on_the_page_are_those_of_the_importer() -> None:
    listed = PAGE.read_text("utf-8").partition("## Operations")[2].strip().splitlines()[2:]
    assert listed == [
        f"| {family} | {' '.join(sorted(f'`{name}`' for name in table))} |" for family, table in FAMILIES.items()
    ]


def test_no_operation_is_in_two_families() -> None:
    names = [name for table in FAMILIES.values() for name in table]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("place", [0, 1])
def test_an_example_runs(place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KILN_HOME", str(tmp_path))
    monkeypatch.delenv("KILN_URL", raising=False)
    exec(compile(blocks(PAGE, "python", "tinygrad")[place].text, str(PAGE), "exec"), {"__name__": "docs"})
