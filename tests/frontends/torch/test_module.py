"""A compiled module is called as the module was, keeps its buffers, and says what it was not exported for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tensorkiln import Client
from tensorkiln.build import Builder
from tensorkiln.errors import CallBoundsError, CallInputError
from tensorkiln.expr import add, mul, symbol
from tensorkiln.frontends.torch import CompiledModule, TorchModel
from tensorkiln.frontends.torch.calling import Calling

from .exports import calls, loaded


def module(client: Client, name: str) -> CompiledModule:
    return loaded("networks", name).compile_module(client=client)


def test_buffers_are_kept_from_call_to_call(client: Client) -> None:
    counter = module(client, "counter")
    for number, call in enumerate(calls("networks", "counter"), start=1):
        found = counter(*call.arguments)
        np.testing.assert_allclose(found["centred"], call.results[0], rtol=1e-5, atol=1e-6)
        count, (total, nothing, seven) = found["nested"]
        assert (int(count), nothing, seven) == (number, None, 7)
        np.testing.assert_allclose(total, call.results[2], rtol=1e-5)
        assert set(counter.state) == {"calls", "mean"}
        np.testing.assert_allclose(counter.state["mean"], call.buffers["mean"], rtol=1e-5, atol=1e-6)


def test_a_model_gives_modules_of_which_each_has_its_own_buffers(client: Client) -> None:
    model = loaded("networks", "counter")
    first, second = (model.compile_module(client=client) for _ in range(2))
    x = np.ones((4, 3), np.float32)
    first(x)
    assert int(first.state["calls"]) == 1
    assert int(second.state["calls"]) == int(model.state["calls"]) == 0


def test_arguments_may_be_nested_and_named(client: Client) -> None:
    keyed, (call,) = module(client, "keyed"), calls("networks", "keyed")
    first, second, _, bias = call.arguments
    for found in (
        keyed([first, second], 2.5, {"bias": bias}),
        keyed((first, second), scale=2.5, options={"bias": bias}),
    ):
        assert isinstance(found, tuple)
        np.testing.assert_allclose(found[0], call.results[0], rtol=1e-5)
        np.testing.assert_array_equal(found[1], second)


def test_arguments_of_another_structure_are_refused(client: Client) -> None:
    keyed, (call,) = module(client, "keyed"), calls("networks", "keyed")
    first, second, _, bias = call.arguments
    with pytest.raises(CallInputError, match=r"the export fixed scale at 2\.5; given is 3\.0"):
        keyed([first, second], 3.0, {"bias": bias})
    with pytest.raises(CallInputError, match=r"0\.0: a sequence of 2 is taken"):
        keyed([first], 2.5, {"bias": bias})
    with pytest.raises(CallInputError, match=r"a dict with the keys \['bias'\] is taken"):
        keyed([first, second], 2.5, {"weight": bias})
    with pytest.raises(CallInputError, match=r"takes the arguments \['pair', 'scale', 'options'\], given are 1 by pos"):
        keyed([first, second], other=3)


def test_an_argument_that_the_module_writes_into_is_changed(client: Client) -> None:
    x = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    total, again = module(client, "writer")(x)
    assert x.tolist() == [[2, 4], [6, 8], [10, 12]]
    assert float(total) == float(again) == 42


def test_random_numbers_follow_their_key(client: Client) -> None:
    drawing = module(client, "drawing")
    x = np.zeros((40, 25), np.float32)
    with pytest.raises(CallInputError, match="give another random_key for every call"):
        drawing(x)
    first, dropped = drawing(x, random_key=7)
    again, _ = drawing(x, random_key=7)
    other, _ = drawing(x, random_key=8)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert (first >= 0).all()
    assert (first < 1).all()
    assert 0.45 < first.mean() < 0.55
    assert set(np.unique(dropped).tolist()) == {0.0, np.float32(4 / 3).item()}
    assert 0.68 < (dropped > 0).mean() < 0.82


def test_a_model_that_is_saved_is_read_back_as_a_plain_one(client: Client, tmp_path: Path) -> None:
    model, (call, _) = loaded("networks", "documented"), calls("networks", "documented")
    model.save(tmp_path / "documented.kiln")
    read = TorchModel.load(tmp_path / "documented.kiln")
    (found,) = read.compile(client=client)(*call.arguments).values()
    np.testing.assert_allclose(found, call.results[0], rtol=1e-5)


def test_weights_that_are_shared_are_one_parameter() -> None:
    model = loaded("networks", "tied")
    assert len(model.parameters) == 1


def test_sizes_outside_of_torchs_ranges_are_refused(client: Client) -> None:
    documented = module(client, "documented")
    assert documented(np.ones((64, 6), np.float32))["probabilities"].shape == (64, 3)
    with pytest.raises(CallBoundsError):
        documented(np.ones((65, 6), np.float32))
    with pytest.raises(CallBoundsError):
        documented(np.ones((1, 6), np.float32))


def test_arguments_other_than_arrays_are_refused_before_the_call(client: Client) -> None:
    writer, counter = module(client, "writer"), module(client, "counter")
    with pytest.raises(CallInputError, match="must be an array; given is a list"):
        counter([[1.0, 2.0, 3.0]])
    assert int(counter.state["calls"]) == 0
    fixed = np.ones((3, 2), np.float32)
    fixed.flags.writeable = False
    with pytest.raises(CallInputError, match="the module writes into x, which must be an array of NumPy's"):
        writer(fixed)


def test_results_are_the_callers_though_they_are_buffers(client: Client) -> None:
    counter, (call, *_) = module(client, "counter"), calls("networks", "counter")
    found = counter(*call.arguments)
    kept = {name: array.copy() for name, array in counter.state.items()}
    for array in (found["centred"], found["nested"][0], found["nested"][1][0]):
        np.asarray(array)[...] = 99
    assert all(np.array_equal(counter.state[name], array) for name, array in kept.items())


def test_names_that_meet_are_told_apart(client: Client) -> None:
    model = loaded("corners", "same_names")
    assert list(model.inputs) == ["x", "bias", "x'", "output"]
    assert list(model.outputs) == ["output", "x", "output'"]
    same = model.compile_module(client=client)
    for call in calls("corners", "same_names"):
        np.testing.assert_allclose(same(*call.arguments), call.results[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(same.state["x'"], call.buffers["x"], rtol=1e-5, atol=1e-6)


def test_integers_must_be_what_the_sizes_make_them() -> None:
    n = symbol("s0")
    calling = Calling(("x", "n", "three", "more"), {"x": (n,)}, {"n": n, "three": 3, "more": add(n, 1)}, {}, (), {}, {})
    x = np.zeros(5, np.float32)
    assert calling.symbols({"x": x, "n": 5, "three": 3, "more": 6}) == {"s0": 5}
    with pytest.raises(CallInputError, match="three is 4, and must be 3"):
        calling.symbols({"x": x, "n": 5, "three": 4, "more": 6})
    with pytest.raises(CallInputError, match=r"more is 7, and must be .*, here 6"):
        calling.symbols({"x": x, "n": 5, "three": 3, "more": 7})
    for wrong in (5.0, True, "5", None):
        with pytest.raises(CallInputError, match="n must be an integer; given is a"):
            calling.symbols({"x": x, "n": wrong, "three": 3, "more": 6})


def test_a_symbol_is_read_from_a_multiple_of_it(client: Client) -> None:
    builder = Builder("doubled")
    n = builder.symbol("n", 1, 8)
    x = builder.input("float32", (mul(n, 2),))
    builder.output(x + 1.0)
    calling = Calling(("x",), {"x": (mul(n, 2),)}, {}, {}, (), {}, {})
    model = TorchModel(builder.graph(), {}, {"x": x.var}, {"output": x.var + 1}, calling, {})
    assert model.compile(client=client)(np.ones(6, np.float32))["output"].tolist() == [2] * 6
