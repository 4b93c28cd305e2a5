"""The page about PyTorch lists every operator, and its examples run: those that need torch where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorkiln.frontends.torch import FAMILIES, OPERATORS, REFUSED
from tensorkiln.frontends.torch.complex_operators import COMPLEX
from tests.snippets import ROOT, blocks

from .exports import program

PAGE = ROOT / "docs" / "torch.md"


def test_the_operators_on_the_page_are_those_of_the_importer() -> None:
    listed = PAGE.read_text("utf-8").partition("## Operators")[2].partition("## ")[0].strip().splitlines()[2:]
    assert listed == [
        f"| {family} | {' '.join(sorted(f'`{name}`' for name in table))} |" for family, table in FAMILIES.items()
    ]


def test_the_refusals_on_the_page_are_those_of_the_importer() -> None:
    listed = PAGE.read_text("utf-8").partition("## Refused operators")[2].partition("## ")[0].strip().splitlines()
    by_reason: dict[str, list[str]] = {}
    for name, reason in REFUSED.items():
        by_reason.setdefault(reason, []).append(f"`{name}`")
    wanted = [f"| {reason} | {' '.join(names)} |" for reason, names in by_reason.items()]
    assert [line for line in listed if "`aten." in line and line.startswith("|")] == wanted
    assert not REFUSED.keys() & OPERATORS.keys()


def test_no_operator_of_the_core_is_missing() -> None:
    torch = pytest.importorskip("torch", reason="torch is no dependency of the project; this test runs where it is")
    core: set[str] = set()
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        packet = getattr(torch.ops.aten, name, None) if space == "aten" else None
        overload = getattr(packet, schema.overload_name or "default", None)
        if overload is not None and torch.Tag.core in overload.tags:
            core.add(str(overload))
    assert len(core) > 180
    # Sizes are read from torch's types.
    left = {name for name in core if not name.startswith("aten.sym_")}
    assert left <= OPERATORS.keys() | COMPLEX.keys() | REFUSED.keys()


def test_no_operator_is_in_two_families() -> None:
    names = [name for table in FAMILIES.values() for name in table]
    assert len(names) == len(set(names))


def test_the_example_without_torch_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "layer.pt2").write_bytes(program("networks", "documented").getvalue())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KILN_URL", raising=False)
    monkeypatch.setenv("KILN_HOME", str(tmp_path / "home"))
    (example,) = blocks(PAGE, "python")
    exec(compile(example.text, str(PAGE), "exec"), {})


@pytest.mark.filterwarnings("ignore")
def test_the_examples_with_torch_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="torch is no dependency of the project; these examples run where it is")
    monkeypatch.chdir(tmp_path)
    for example in blocks(PAGE, "python", "torch"):
        exec(compile(example.text, str(PAGE), "exec"), {"__name__": "docs"})
    assert (tmp_path / "layer.pt2").exists()
