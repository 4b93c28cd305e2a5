"""Accesses of eight bytes by a mask, which a CPU with AVX-512 has for sixteen."""

from __future__ import annotations

from pathlib import Path

import pytest

from passes.codegen.object_code import assembly
from tests.compiled import compiled, target
from tests.fuzz.trial import read

FOUND = Path(__file__).parents[1] / "fuzz" / "found" / "eight_bytes_by_a_mask_that_is_spilled.json"
TARGET = target("cpu:x86-64-v4")


def test_a_mask_of_eight_bytes_is_cleared_by_shifts(monkeypatch: pytest.MonkeyPatch) -> None:
    # In one piece: the graph puts bytes side by side, which in pieces needs no mask.
    monkeypatch.setattr("passes.schedule.nests.MOST_PIECES", 0)
    graph = read(FOUND.read_text()).graph
    text = assembly(compiled(graph, "cpu:x86-64-v4", texts=["translate"]).dumps["translate"], TARGET)
    assert "vmovdqu8" in text
    assert "kshiftr" in text
    assert "kmovb" not in text, "LLVM takes it for a copy, and spills what it has not cleared"


def test_other_code_has_all_extensions() -> None:
    convert = """
        define void @f(ptr %from, ptr %to) {
          %longs = load <8 x i64>, ptr %from
          %floats = sitofp <8 x i64> %longs to <8 x float>
          store <8 x float> %floats, ptr %to
          ret void
        }
    """
    assert "vcvtqq2ps" in assembly(convert, TARGET)
