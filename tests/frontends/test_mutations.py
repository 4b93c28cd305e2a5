"""Damaged models of every format are models or errors of ours; `python -m tests.frontends.mutations` runs thousands."""

from __future__ import annotations

import pytest

from tensorkiln import Client
from tensorkiln.errors import TensorkilnError

from .mutations import FORMATS, campaign, fits

COUNT = 20


@pytest.mark.filterwarnings("ignore:Ignoring unknown external data")
@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_model_is_a_model_or_an_error_of_ours(client: Client, name: str) -> None:
    assert campaign(name, COUNT, 1, client).wrong == []


@pytest.mark.parametrize("name", FORMATS)
def test_samples_are_models_before_they_are_damaged(client: Client, name: str) -> None:
    read = 0
    for sample in FORMATS[name].samples():
        try:
            read += fits(FORMATS[name].read(sample, client))
        except TensorkilnError:
            # One sample of ONNX needs `constants`: it is there for its attributes.
            assert name == "onnx"
    assert read >= max(len(FORMATS[name].samples()) - 1, 1)
