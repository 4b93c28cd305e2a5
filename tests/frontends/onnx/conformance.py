"""How many of the onnx package's node cases import and give the expected outputs: `make conformance`.

Beside each count stands that of ONNX Runtime where it is installed.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.backend.test.case import base
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.case.test_case import TestCase

from tensorkiln.errors import TensorkilnError, UnsupportedGraphError
from tensorkiln.frontends.model import Model
from tensorkiln.frontends.onnx import load
from tensorkiln.frontends.onnx.load import KEY
from tensorkiln.reference import evaluate

DRAWN = re.compile(r"test_bernoulli|test_training_dropout(?!_zero_ratio)")
"""Cases whose expected numbers are those of NumPy's generator: any of the same shape and type will do."""
Array = np.ndarray[Any, Any]
STEPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23}
"""Of floats at 1. Two steps of 16 bits may lie between results that were rounded at other places."""


@dataclass(frozen=True)
class Outcome:
    """`passed`, `refused` by a typed error, `wrong` numbers, or `untyped`: an error that is not ours."""

    case: str
    kind: str
    reason: str = ""


@cache
def cases() -> tuple[TestCase, ...]:
    """All node cases of the package, expansions of functions included; generated once."""
    # The package would read its own sources for its manual.
    unread = mock.patch.object(base, "process_snippet", return_value=("", ""))
    with warnings.catch_warnings(), np.errstate(all="ignore"), unread:
        warnings.simplefilter("ignore")
        found = collect_testcases(None)  # type: ignore[arg-type]  # None asks for all operators
    return tuple(case for case in found if case.model is not None and case.data_sets)


@cache
def cases_by_operator() -> Mapping[str, Sequence[TestCase]]:
    """The expansion of an operator into other nodes belongs to that operator."""
    named = {case.name: case for case in cases()}
    found: defaultdict[str, list[TestCase]] = defaultdict(list)
    for case in cases():
        model: Any = named.get(case.name.removesuffix("_expanded"), case).model
        found[model.graph.node[-1].op_type].append(case)
    return found


def outcome(case: TestCase) -> Outcome:
    """What comes of a case."""
    try:
        inputs, expected = arrays_of(case)
        model, free = imported(case, inputs)
        if KEY in model.inputs:
            free[KEY] = np.asarray(0, np.uint64)
        actual = evaluate(model.graph, *model.arguments(**free))
        problem = difference(actual, expected, case)
    except TensorkilnError as error:
        return Outcome(case.name, "refused", str(error))
    except Exception as error:  # What is not ours is what is looked for.
        return Outcome(case.name, "untyped", f"{type(error).__name__}: {error}")
    return Outcome(case.name, "wrong", problem) if problem else Outcome(case.name, "passed")


def imported(case: TestCase, inputs: dict[str, Any]) -> tuple[Model, dict[str, Any]]:
    """The model and the inputs left to pass: those that shapes depend on are fixed."""
    assert case.model is not None
    kept, fixed, symbols = dict(inputs), dict[str, Any](), dict[str, int]()
    while True:
        try:
            return load(case.model, symbols=symbols, constants=fixed), kept
        except UnsupportedGraphError as error:
            if (dynamic := error.details.get("dimension")) is not None:
                symbols |= _sizes(case.model, inputs, dynamic)
                continue
            advised = [name for name in re.findall(r"'([^']*)'", error.message.partition("; pass ")[2]) if name in kept]
            if not advised:
                raise
            fixed |= {name: kept.pop(name) for name in advised}


def _sizes(model: ModelProto, inputs: Mapping[str, Any], dimension: str) -> dict[str, int]:
    """What the arrays of the case say of a dimension."""
    found: dict[str, int] = {}
    for entry in model.graph.input:
        for axis, dim in enumerate(entry.type.tensor_type.shape.dim):
            if dimension in (dim.dim_param, f"{entry.name}_{axis}"):
                found[dimension] = inputs[entry.name].shape[axis]
    return found


def difference(actual: Any, expected: list[Any], case: TestCase) -> str:
    """What differs, or nothing. A sequence counts as its elements."""
    actual, expected = _flat(actual), _flat(expected)
    if len(actual) != len(expected):
        return f"{len(actual)} outputs, expected {len(expected)}"
    for place, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
            return f"output {place} is {ours.dtype}{list(ours.shape)}, expected {theirs.dtype}{list(theirs.shape)}"
        if DRAWN.match(case.name):
            continue
        mine, other = (array.astype(np.float64) if array.dtype.kind in "fV" else array for array in (ours, theirs))
        step = STEPS.get(ours.dtype.name, 0)
        # A sum of large numbers is not nearer to 0 than a step of these.
        atol = max(case.atol, step * float(np.max(np.abs(other[np.isfinite(other)]), initial=0)) / 2 if step else 0)
        rtol = case.rtol if step < case.rtol else 2 * step
        if not np.allclose(mine, other, rtol=rtol, atol=atol, equal_nan=True):
            return f"output {place} differs"
    return ""


def _flat(results: Any) -> list[Any]:
    return [each for result in results for each in (result if isinstance(result, list) else [result])]


def arrays_of(case: TestCase) -> tuple[dict[str, Any], list[Any]]:
    assert case.model is not None
    assert case.data_sets is not None
    inputs, outputs = case.data_sets[0]
    names = [entry.name for entry in case.model.graph.input]
    return dict(zip(names, map(_array, inputs), strict=False)), [_array(output) for output in outputs]


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def onnx_runtime() -> Callable[[TestCase], str] | None:
    """What becomes of a case in ONNX Runtime, where that is installed."""
    try:
        import onnxruntime  # type: ignore[import-not-found]
    except ImportError:
        return None
    onnxruntime.set_default_logger_severity(4)

    def run(case: TestCase) -> str:
        inputs, expected = arrays_of(case)
        try:
            model: Any = case.model
            session = onnxruntime.InferenceSession(ModelProto.SerializeToString(model))
            return "wrong" if difference(session.run(None, inputs), expected, case) else "passed"
        except Exception:  # Whatever it raises: it does not run the case.
            return "refused"

    return run


def main() -> int:
    """The command line; 1 when a number is wrong or an error is not ours."""
    parser = argparse.ArgumentParser(prog="python -m tests.frontends.onnx.conformance", description=__doc__)
    parser.add_argument("--details", action="store_true", help="every case that does not pass, with its reason")
    options = parser.parse_args()
    peer, theirs = onnx_runtime(), Counter[str]()
    found: list[Outcome] = []
    for case in cases():
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found.append(outcome(case))
            if peer is not None:
                theirs[peer(case)] += 1
    counts = Counter(each.kind for each in found)
    print(f"{len(found)} cases: {dict(counts)}" + (f"; ONNX Runtime: {dict(theirs)}" if peer else ""))
    for each in found:
        if each.kind in ("wrong", "untyped") or (options.details and each.kind != "passed"):
            print(f"{each.kind} {each.case}: {each.reason[:200]}")
    return int(counts["wrong"] + counts["untyped"] > 0)


if __name__ == "__main__":
    sys.exit(main())
