"""What is refused, and how it is named."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from typing import Any

import numpy as np
import pytest

from tensorkiln.errors import CallInputError, RequestError, UnsupportedGraphError
from tensorkiln.frontends.tinygrad import model
from tensorkiln.frontends.tinygrad.installed import installed
from tensorkiln.reference import evaluate

from .recipe import floats, tinygrad

X = floats(4, 6)


def tensor(array: Any) -> Any:
    return tinygrad().Tensor(array).realize()


def test_all_operations_that_are_not_supported_are_in_one_error() -> None:
    given, kind = tensor(X), tinygrad().Tensor
    two = kind(X).shard(("PYTHON:0", "PYTHON:1"), axis=0)
    with pytest.raises(UnsupportedGraphError) as caught:
        model([given + kind.empty(4, 6), (two + 1).relu(), kind.empty(3).exp()], {"x": given})
    found = {(each["operation"], each["reason"].partition(";")[0]) for each in caught.value.details["operations"]}
    assert ("BUFFER", "storage that nothing was written to is read") in found
    assert any(operation == "UNSHARD" for operation, _ in found)
    assert caught.value.message.count("storage that nothing was written to") == 2
    assert "are not supported" in caught.value.message


def test_an_error_names_the_method_and_the_shape() -> None:
    given = tensor(X)
    with pytest.raises(UnsupportedGraphError, match=r"UNSHARD, dtypes.float\[4, 6\]: this operation is not supported"):
        model(given + tinygrad().Tensor(X).shard(("PYTHON:0", "PYTHON:1"), axis=0).to("PYTHON"), {"x": given})


def test_numbers_that_no_element_has_are_refused_by_the_operation() -> None:
    given, kind = tensor(X.astype(np.int32)), tinygrad().Tensor
    infinite = given + kind(float("inf")).cast(tinygrad().dtypes.int32)
    large = given + kind(2) ** 2000 * 2.5
    shifted = given + (kind(1) << kind(-1))
    with pytest.raises(UnsupportedGraphError) as caught:
        model([infinite, large, shifted], {"x": given})
    reasons = {each["reason"] for each in caught.value.details["operations"]}
    for said in ("cannot convert float infinity to integer", "int too large to convert", "negative shift count"):
        assert any(said in each for each in reasons), reasons
    assert "this cannot be computed at the import" in caught.value.message


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (lambda x: {"x": 3}, "is a int, not a tensor"),
        (lambda x: {"x": tinygrad().Tensor(2.0)}, "has no storage"),
        (lambda x: {"x": x, "y": x}, "is another input as well"),
        (lambda x: {"x": x + 1}, "computed of a tensor that the outputs read as well"),
    ],
)
def test_an_input_that_is_none_is_refused(inputs: Any, message: str) -> None:
    given = tensor(X)
    with pytest.raises(CallInputError, match=message):
        model(given * 2, inputs(given))


@pytest.mark.parametrize("outputs", [3, [], {}, [3], {"y": None}])
def test_outputs_that_are_none_are_refused(outputs: Any) -> None:
    with pytest.raises(CallInputError, match="give a tensor, a list or a dict of some"):
        model(outputs)


def test_a_graph_deeper_than_the_stack_of_python_is_translated() -> None:
    found = given = tensor(X)
    for _ in range(2000):
        found = found + given
    np.testing.assert_allclose(evaluate(model(found, {"x": given}).graph, X)[0], 2001 * X, rtol=1e-3)


def test_tinygrad_is_imported_when_it_is_used() -> None:
    code = "import sys, tensorkiln.frontends.tinygrad; raise SystemExit('tinygrad' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_another_version_of_tinygrad_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "0.13.0")
    with pytest.raises(RequestError, match=r"tinygrad 0.13.0 is installed, and graphs of 0.14 are read"):
        installed.__wrapped__("tinygrad")


def test_a_machine_without_tinygrad_is_told_what_to_install() -> None:
    with pytest.raises(RequestError, match=r"pip install 'tensorkiln\[tinygrad\]'"):
        installed.__wrapped__("tinygrad.there_is_no_such_module")
