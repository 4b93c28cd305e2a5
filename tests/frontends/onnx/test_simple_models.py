"""The small models of the onnx package: what they expect, or the name of what graphs do not have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import SequenceProto, TensorProto, TypeProto, numpy_helper
from onnx.backend.test.case.test_case import TestCase

from tests.frontends.onnx.conformance import outcome

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "simple"
REFUSED = {"test_gradient": "the operator ai.onnx.preview.training.Gradient", "test_strnorm": "the element type object"}
MODELS = sorted(path.name for path in FOLDER.iterdir())


def _read(path: Path, kind: TypeProto) -> Any:
    if kind.HasField("sequence_type"):
        return [numpy_helper.to_array(each) for each in SequenceProto.FromString(path.read_bytes()).tensor_values]
    return numpy_helper.to_array(TensorProto.FromString(path.read_bytes()))


def test_all_but_gradients_and_strings_are_there():
    assert sum(not name.startswith(tuple(REFUSED)) for name in MODELS) == 15
    assert len(MODELS) == 23


@pytest.mark.parametrize("name", MODELS)
def test_a_model_gives_what_it_expects_or_is_refused_by_name(name: str):
    proto, data = onnx.load(FOLDER / name / "model.onnx"), FOLDER / name / "test_data_set_0"
    weights = {tensor.name for tensor in proto.graph.initializer}
    given = [entry for entry in proto.graph.input if entry.name not in weights]
    inputs, outputs = (
        [_read(data / f"{side}_{place}.pb", entry.type) for place, entry in enumerate(entries)]
        for side, entries in (("input", given), ("output", proto.graph.output))
    )
    found = outcome(TestCase(name, name, None, None, proto, [(inputs, outputs)], "simple", 1e-5, 1e-6))
    refused = next((reason for start, reason in REFUSED.items() if name.startswith(start)), None)
    assert found.kind == ("passed" if refused is None else "refused"), found.reason
    assert (refused or "") in found.reason
