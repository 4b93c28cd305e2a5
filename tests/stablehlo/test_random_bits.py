"""rng_bit_generator draws what XLA draws on CPUs: its interpreter beside the tests has no generator."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from stablehlo.translate import translate
from tensorkiln.errors import UnsupportedGraphError
from tests.snippets import ROOT

from .modules import module
from .oracle import computed

RECORDS: list[dict[str, Any]] = json.loads((ROOT / "tests/stablehlo/exported/random_bits.json").read_text("utf-8"))


def generator(algorithm: str, state: str, kind: str) -> str:
    kinds = f"(tensor<{state}>) -> (tensor<{state}>, tensor<{kind}>)"
    line = f"%r0, %r1 = stablehlo.rng_bit_generator %a0, algorithm = {algorithm} : {kinds}"
    return module([state], line, state, kind)


@pytest.mark.parametrize("algorithm", ["THREE_FRY", "PHILOX", "DEFAULT"])
def test_the_bits_and_the_state_are_those_of_xla(algorithm: str) -> None:
    records = [each for each in RECORDS if each["algorithm"] == algorithm]
    assert len(records) >= 14
    for each in records:
        text = generator(algorithm, f"{len(each['state'])}xui64", each["kind"])
        after, bits = computed(text, [np.array(each["state"], np.uint64)])
        assert after.tolist() == each["after"], each["kind"]
        assert bits.tolist() == each["bits"], each["kind"]


def test_signed_integers_have_the_same_bits() -> None:
    for signed, unsigned in (("i16", "ui16"), ("i64", "ui64")):
        pairs = ((signed, "2xi64", np.int64), (unsigned, "2xui64", np.uint64))
        (after, bits), (after_unsigned, bits_unsigned) = (
            computed(generator("THREE_FRY", state, f"3x4x{kind}"), [np.array([5, 7], dtype)])
            for kind, state, dtype in pairs
        )
        assert after.view(np.uint64).tolist() == after_unsigned.tolist() == [5, 7 + 12 // (1 if "64" in signed else 2)]
        assert bits.view(bits_unsigned.dtype).tolist() == bits_unsigned.tolist()


@pytest.mark.parametrize(
    ("algorithm", "state", "kind", "message"),
    [
        ("THREE_FRY", "3xui64", "4xui32", "the state of THREE_FRY is of 2 integers of 64 bits"),
        ("PHILOX", "4xui64", "4xui32", "the state of PHILOX is of 2 or 3 integers of 64 bits"),
        ("THREE_FRY", "4xui32", "4xui32", "the state of THREE_FRY is of 2 integers of 64 bits"),
        ("THREE_FRY", "2xui64", "4xf32", "bits are drawn as integers, not as float32"),
    ],
)
def test_unsupported_distributions_are_refused(algorithm: str, state: str, kind: str, message: str) -> None:
    with pytest.raises(UnsupportedGraphError, match=message):
        translate(generator(algorithm, state, kind))
