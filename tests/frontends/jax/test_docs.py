"""The examples of the page about JAX run: where JAX is not installed, those that need none."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLES = re.findall(r"```python( jax)?\n(.*?)```", (ROOT / "docs" / "jax.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("place", range(len(EXAMPLES)))
def test_an_example_runs(place: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    needs_jax, example = EXAMPLES[place]
    if needs_jax and find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("KILN_HOME", str(tmp_path))
    exec(compile(example, "docs/jax.md", "exec"), {})


def test_there_are_examples_of_both_kinds() -> None:
    assert sorted(kind for kind, _ in EXAMPLES) == ["", "", " jax"]
