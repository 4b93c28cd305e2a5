"""Where an operation comes from, as a message shows it."""

from __future__ import annotations

import pytest

from stablehlo import reading
from stablehlo.location import place

FILE = '"model.py":3:9'


@pytest.mark.parametrize(
    ("spelled", "shown"),
    [
        ("unknown", ""),
        (FILE, "model.py:3:9"),
        (f'"jit(f)/tanh"({FILE})', "model.py:3:9 (jit(f)/tanh)"),
        ('"x"', "x"),
        (f'callsite("inner"({FILE}) at "other.py":1:1)', "model.py:3:9 (inner)"),
        (f'"jit(f)"(callsite("inner"(unknown) at {FILE}))', "model.py:3:9 (jit(f))"),
        (f"fused[{FILE}, unknown]", "model.py:3:9"),
        ('"a\\0A\\1Bb"', "a??b"),
        (f'"{"n" * 300}"', f"{'n' * 199}…"),
    ],
)
def test_a_location(spelled: str, shown: str) -> None:
    with reading.context() as within:
        module = reading.read_text(f"module {{}} loc({spelled})", within)
        assert place(module.operation.location) == shown
