"""Artifacts with parts of the dialect sdy, which has no binding here: what it says of places changes no value."""

from __future__ import annotations

import random

import numpy as np
import pytest

from dialect.mlir import stablehlo
from stablehlo import reading
from stablehlo.bytecode import BytecodeError, without_attributes_of
from stablehlo.translate import translate
from tensorkiln.errors import UnsupportedGraphError
from tests.snippets import ROOT

from .modules import module
from .oracle import computed

EXPORTED = ROOT / "tests" / "stablehlo" / "exported"
SHARDED = (EXPORTED / "sharded.mlirbc").read_bytes()


def test_places_on_a_mesh_and_keys_change_no_value() -> None:
    x, key = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([7, 9], np.uint32)
    moved, keys, same = computed(SHARDED, [x, key])
    assert np.array_equal(moved, x * 2 + x.sum())
    # What jax.random.split gives for that key.
    assert keys.tolist() == [[1949403054, 1208180859], [1355769149, 3709916571]]
    assert same.tolist() == [7, 9]


def test_a_function_of_what_one_of_several_devices_has_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedGraphError, match=r"^sdy\.manual_computation at .*shard_map.*not supported"):
        translate((EXPORTED / "mapped.mlirbc").read_bytes())


def test_modules_without_shardings_are_unchanged() -> None:
    with reading.context():
        plain = stablehlo.serialize_portable_artifact_str(
            module(["4xf32"], '%r0 = stablehlo.tanh %a0 {note = "sdy"} : tensor<4xf32>', "4xf32"), "1.0.0"
        )
    assert b"sdy\0" in plain
    assert translate(plain).document["nodes"]
    with pytest.raises(BytecodeError, match="the dialect is not there"):
        without_attributes_of("sdy", plain)


def test_damaged_bytes_end_in_a_typed_error() -> None:
    draws = random.Random(1)
    outcomes: set[str] = set()
    for turn in range(2000):
        damaged = bytearray(SHARDED[: len(SHARDED) - turn % 500])
        for _ in range(draws.randint(0, 4)):
            damaged[draws.randrange(4, len(damaged))] = draws.randrange(256)
        try:
            changed = without_attributes_of("sdy", bytes(damaged))
        except BytecodeError:
            outcomes.add("refused")
        else:
            outcomes.add("changed")
            assert len(changed) == len(damaged)
    assert outcomes == {"refused", "changed"}


def test_an_artifact_whose_attributes_are_not_found_is_refused_with_advice() -> None:
    place = SHARDED.index(b"unrealized_conversion_cast")
    damaged = SHARDED[:place] + b"\xff" + SHARDED[place + 1 :]
    with pytest.raises(UnsupportedGraphError, match=r"parts of the dialect sdy, .* are not read here"):
        translate(damaged)
