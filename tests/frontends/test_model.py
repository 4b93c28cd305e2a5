"""A model's program is called with names, and has its parameters and the values of its symbols."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tensorkiln import Client
from tensorkiln.build import Builder
from tensorkiln.errors import CallBoundsError, CallInputError, RequestError, UnsupportedGraphError
from tensorkiln.expr import maximum, mul
from tensorkiln.frontends.model import CompiledModel, Model, in_order

X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.full((2, 3), 10, np.float32)


def model() -> Model:
    """`scaled` and `summed` of x and y, which have n rows of 3, and of a parameter of 3."""
    builder = Builder("model")
    n = builder.symbol("n", 1, 16)
    x, y = builder.input("float32", (n, 3)), builder.input("float32", (n, 3))
    weight = builder.parameter("float32", (3,))
    scaled, summed = x * weight, x + y
    builder.output(scaled, summed)
    weights = np.array([1, 2, 3], np.float32)
    return Model(
        builder.graph(),
        {weight.var: weights},
        {"x": x.var, "y": y.var},
        {"scaled": scaled.var, "summed": summed.var},
    )


@pytest.fixture(scope="module")
def compiled(client: Client) -> CompiledModel:
    return model().compile(client=client)


@pytest.mark.parametrize("by_name", [0, 1, 2])
def test_a_compiled_model_takes_inputs_by_position_and_by_name(compiled: CompiledModel, by_name: int) -> None:
    names = ("x", "y")[2 - by_name :]
    given = dict(zip(("x", "y"), (X, Y), strict=True))
    results = compiled(*(X, Y)[: 2 - by_name], **{name: given[name] for name in names})
    assert list(results) == ["scaled", "summed"]
    assert np.array_equal(results["scaled"], X * np.array([1, 2, 3], np.float32))
    assert np.array_equal(results["summed"], X + Y)


def test_a_compiled_models_symbols_are_read_from_the_arrays(compiled: CompiledModel) -> None:
    for rows in (1, 5, 16):
        x = np.ones((rows, 3), np.float32)
        assert compiled(x, x)["summed"].tolist() == [[2, 2, 2]] * rows


def test_rows_that_differ_are_refused(compiled: CompiledModel) -> None:
    with pytest.raises(CallInputError, match="axis 0 of y has the size 1, and must be n, here 2, since axis 0 of x"):
        compiled(X, Y[:1])


def test_symbols_are_read_from_sizes_that_are_linear_in_them_or_given_by_name(client: Client) -> None:
    builder = Builder("pairs")
    n, m = builder.symbol("n", 1, 8), builder.symbol("m", 1, 8)
    x, y = builder.input("float32", (mul(2, n), 3)), builder.input("float32", (maximum(m, 4),))
    total, pairs = y + 1.0, x.reshape(n, 2, 3)
    builder.output(pairs, total)
    inputs = {"x": x.var, "y": y.var}
    both = Model(builder.graph(), {}, inputs, {"pairs": pairs.var, "total": total.var}).compile(client=client)
    for rows in (1, 4):
        x_given = np.arange(6 * rows, dtype=np.float32).reshape(2 * rows, 3)
        results = both(x_given, np.ones(4, np.float32), m=2)
        assert np.array_equal(results["pairs"], x_given.reshape(rows, 2, 3))
        assert results["total"].tolist() == [2] * 4
    with pytest.raises(CallInputError, match=r"axis 0 of x has the size 3, and must be 2\*n"):
        both(np.ones((3, 3), np.float32), np.ones(4, np.float32), m=2)
    with pytest.raises(CallBoundsError, match="the symbol m is missing"):
        both(np.ones((2, 3), np.float32), np.ones(4, np.float32))
    with pytest.raises(CallInputError, match="the model takes the inputs"):
        both(np.ones((2, 3), np.float32), np.ones(4, np.float32), m=2, n=1)


def test_a_symbol_that_a_call_cannot_name_is_refused() -> None:
    builder = Builder("same")
    n = builder.symbol("n", 1, 8)
    x = builder.input("float32", (maximum(n, 4),))
    y = x + 1.0
    builder.output(y)
    with pytest.raises(UnsupportedGraphError, match="no input has an axis that gives the symbol n"):
        Model(builder.graph(), {}, {"n": x.var}, {"y": y.var}).symbols()


@pytest.mark.parametrize(
    ("arrays", "named"),
    [((), {"x": X}), ((X, Y, X), {}), ((X,), {"x": X}), ((X,), {"y": Y, "z": Y}), ((), {})],
)
def test_inputs_that_are_missing_repeated_or_unknown_are_named(
    arrays: tuple[np.ndarray, ...], named: dict[str, np.ndarray]
) -> None:
    with pytest.raises(CallInputError, match=r"the model takes the inputs \['x', 'y'\], given are"):
        in_order(["x", "y"], arrays, named)


def test_a_saved_model_is_read_back_and_written_the_same(tmp_path: Path) -> None:
    first, second = tmp_path / "first.kilnmodel", tmp_path / "second.kilnmodel"
    model().save(first)
    read = Model.load(first)
    assert (read.graph, read.inputs, read.outputs) == (model().graph, model().inputs, model().outputs)
    assert {var: array.tolist() for var, array in read.parameters.items()} == {2: [1.0, 2.0, 3.0]}
    read.save(second)
    assert second.read_bytes() == first.read_bytes()


@pytest.mark.parametrize("weights", [np.ones(3, np.float64), np.ones(4, np.float32), np.ones((1, 3), np.float32)])
def test_a_parameter_of_another_type_is_not_saved(tmp_path: Path, weights: np.ndarray) -> None:
    with pytest.raises(CallInputError, match="parameter 2 is"):
        replace(model(), parameters={2: weights}).save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_damaged_saved_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model"
    model().save(path)
    whole = path.read_bytes()
    for end in range(0, len(whole), 13):
        path.write_bytes(whole[:end])
        with pytest.raises(RequestError, match="is not a saved model"):
            Model.load(path)
    path.write_bytes(whole.replace(b'{"x":0,"y":1}', b'{"y":1,"x":0}'))
    with pytest.raises(RequestError, match="is not a saved model"):
        Model.load(path)


def test_a_saved_model_without_its_middle_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model"
    model().save(path)
    whole = path.read_bytes()
    # The first entry would then begin before the file, where no system seeks.
    path.write_bytes(whole[:100] + whole[140:])
    with pytest.raises(RequestError, match="is not a saved model"):
        Model.load(path)


def test_an_encrypted_or_shortened_entry_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model"
    model().save(path)
    whole = bytearray(path.read_bytes())
    for signature, field in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = whole.find(signature)
        while place >= 0:
            whole[place + field] |= 1
            place = whole.find(signature, place + 4)
    path.write_bytes(whole)
    with pytest.raises(RequestError, match=r"is not a saved model.*encrypted"):
        Model.load(path)
    model().save(path)
    with zipfile.ZipFile(path) as archive:
        last = archive.infolist()[-1]
    whole = bytearray(path.read_bytes())
    place = whole.rfind(b"PK\x01\x02")
    # An entry that begins behind its bytes ends before it is whole.
    whole[place + 42 : place + 46] = (len(whole) - 30).to_bytes(4, "little")
    assert last.header_offset < len(whole) - 30
    path.write_bytes(whole)
    with pytest.raises(RequestError, match="is not a saved model"):
        Model.load(path)
