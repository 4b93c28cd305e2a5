"""What torch exports is imported without torch, and computes what torch computed."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from tensorkiln import Client
from tests.frontends.here import Here
from tests.numerics.cases.turns import EXAMPLES

from .exports import arguments, calls, cases, check, loaded, run_reference

CASES = [case for case in cases() if case not in {("networks", "drawing"), ("statistics", "distributions")}]
"""Random numbers are not those that torch draws."""
COMPILED = [*(case for case in CASES[::5] if case[0] != "models"), ("models", "selective_scan")]
"""Of which the programs are compiled and run as well: a part of each family, and one of the larger models."""
SENT = 1 if EXAMPLES > 1 else 10
"""Of so many of these one is compiled by a service, which does with each the same as with another."""


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 150
    assert len({family for family, _ in CASES}) == 13


@pytest.mark.parametrize(("family", "name"), CASES, ids=[name for _, name in CASES])
def test_the_reference_computes_what_torch_did(family: str, name: str) -> None:
    model = loaded(family, name)
    state = dict(model.state)
    for call in calls(family, name):
        found = run_reference(model, call, state)
        check(call, found, model)
        state = {buffer: found[output] for buffer, output in model.calling.buffers.items()}


@pytest.mark.parametrize(("family", "name"), COMPILED, ids=[name for _, name in COMPILED])
def test_compiled_programs_compute_what_torch_did(client: Client, family: str, name: str) -> None:
    model = loaded(family, name)
    compiled = model.compile(client=cast(Client, Here()) if COMPILED.index((family, name)) % SENT else client)
    state = dict(model.state)
    for call in calls(family, name):
        given = arguments(model, call, state)
        found = compiled(**{name: np.asarray(array) for name, array in given.items()})
        check(call, found, model)
        state = {buffer: found[output] for buffer, output in model.calling.buffers.items()}
