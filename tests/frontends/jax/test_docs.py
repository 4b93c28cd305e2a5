"""The examples of the page about JAX run: without JAX or Flax, those that need none."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLES = re.findall(r"```python( jax| flax)?\n(.*?)```", (ROOT / "docs" / "jax.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("place", range(len(EXAMPLES)))
def test_an_example_runs(place: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    needed, example = EXAMPLES[place]
    if needed and find_spec(needed.strip()) is None:
        pytest.skip(f"{needed.strip()} is not installed")
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("KILN_HOME", str(tmp_path))
    exec(compile(example, "docs/jax.md", "exec"), {})


def test_there_are_examples_of_each_kind() -> None:
    assert sorted(kind for kind, _ in EXAMPLES) == ["", "", " flax", " jax"]
