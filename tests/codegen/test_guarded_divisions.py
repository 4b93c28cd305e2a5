"""Quotients in the addresses of guarded loads."""

from __future__ import annotations

import pytest

from passes.codegen.object_code import optimised_ir
from tensorkiln.build import Builder, conv2d
from tests.compiled import compiled, target


@pytest.mark.parametrize("name", ["cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64"])
def test_no_lane_decides_for_others_whether_an_address_is_computed(name: str) -> None:
    b = Builder("padded")
    x = b.input("float32", (1, 3, b.symbol("h", 1, 512), 20))
    b.output(conv2d(x, b.input("float32", (2, 3, 3, 3)), padding=1))
    text = optimised_ir(compiled(b.graph(), name, texts=["translate"]).dumps["translate"], target(name))
    assert "udiv" in text
    assert "pred." not in text, "the vectoriser has put a division into a branch of one lane"
