"""The single-operator cases that the onnx package generates, by operator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.case.test_case import TestCase

from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.frontends.onnx import OnnxModel, load


@cache
def cases_by_operator() -> Mapping[str, list[TestCase]]:
    """Generated once; models of several nodes are expansions of functions and left out."""
    found: defaultdict[str, list[TestCase]] = defaultdict(list)
    for case in collect_testcases(None):  # type: ignore[arg-type]  # None asks for all operators
        if case.model is not None and len(case.model.graph.node) == 1:
            found[case.model.graph.node[0].op_type].append(case)
    return found


def arrays_of(case: TestCase) -> tuple[dict[str, np.ndarray[Any, Any]], list[np.ndarray[Any, Any]]]:
    """The inputs by name, and the expected outputs."""
    assert case.model is not None
    assert case.data_sets is not None
    inputs, outputs = case.data_sets[0]
    names = [entry.name for entry in case.model.graph.input]
    return dict(zip(names, map(_array, inputs), strict=True)), [_array(output) for output in outputs]


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def imported(case: TestCase, inputs: Mapping[str, np.ndarray[Any, Any]]) -> tuple[OnnxModel, dict[str, Any]]:
    """The model, and the inputs left to pass; where shapes depend on inputs, all but the first are fixed."""
    assert case.model is not None
    try:
        return load(case.model), dict(inputs)
    except UnsupportedGraphError as error:
        if "pass it in `constants`" not in error.message:
            raise
    first = next(iter(inputs)) if case.model.graph.node[0].op_type != "ConstantOfShape" else None
    constants = {name: array for name, array in inputs.items() if name != first}
    return load(case.model, constants=constants), {name: array for name, array in inputs.items() if name == first}
