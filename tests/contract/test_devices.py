"""Where values live."""

from typing import Any

from tests.contract.test_definitions import buffer
from tests.contract.test_inferred_types import F, node
from tests.contract.wire import OUT, Wire, accept, placeholder, refuse, wire


def on(device: str | None, shape: list[int]) -> dict[str, Any]:
    return {"dtype": F, "shape": shape, "device": device}


def add(a: int, b: int, out: int) -> Wire:
    return {"node": "binop", "op": "add", "a_var": a, "b_var": b, "out_var": out, "dtype": F}


def copy(source: int, device: str, out: int) -> Wire:
    return {"node": "copy", "in_var": source, "target_device": device, "clone": False, "out_var": out, "dtype": F}


def test_a_graph_that_names_no_device_has_none() -> None:
    graph = accept(wire([placeholder(0, F, [3]), add(0, 0, 1)], [0], [1]))
    assert {kind.device for kind in graph.types.values()} == {None}


def test_inputs_and_buffers_name_the_home_in_any_spelling() -> None:
    graph = wire([placeholder(0, F, [3]), buffer(1, 3), add(0, 1, 2)], [0], [2])
    graph["vars_metadata"] = {"0": on("cpu", [3])}
    assert [accept(graph).types[var].device for var in (0, 1, 2)] == ["CPU"] * 3


def test_device_0_is_the_device_without_a_number() -> None:
    graph = wire([placeholder(0, F, [3]), add(0, 0, 1)], [0], [1])
    graph["vars_metadata"] = {"0": on("cuda:0", [3]), "1": on("CUDA", [3])}
    assert accept(graph).types[1].device == "CUDA"


def test_two_homes_are_not_supported() -> None:
    graph = wire([placeholder(0, F, [3]), buffer(1, 3)], [0], [1])
    graph["vars_metadata"] = {"0": on("CUDA", [3])}
    refuse(graph, "graph.unsupported", "/nodes/1/device")


def test_a_copy_leads_away_and_operands_live_together() -> None:
    start = [buffer(0, 3), copy(0, "cuda:1", 1)]
    graph = accept(wire([*start, add(1, 1, 2), copy(2, "CPU", 3), add(3, 0, 4)], [0], [4]))
    assert [graph.types[var].device for var in range(5)] == ["CPU", "CUDA:1", "CUDA:1", "CPU", "CPU"]
    refuse(wire([*start, add(0, 1, 2)], [0], [2]), pointer="/nodes/2")


def test_a_constant_lives_with_its_operands() -> None:
    half = node("const_scalar", F, value=0.5)
    graph = accept(wire([buffer(0, 3), copy(0, "rocm:2", 1), half, add(1, OUT, 2)], [0], [2]))
    assert graph.types[2].device == "ROCM:2"


def test_a_stated_device_is_the_inferred_one() -> None:
    graph = wire([buffer(0, 3), add(0, 0, 1)], [0], [1])
    graph["vars_metadata"] = {"1": on("CUDA", [3])}
    refuse(graph, pointer="/vars_metadata/1/device")


def test_the_destination_of_a_copy_may_name_another_device() -> None:
    destination = {**buffer(1, 3), "device": "CUDA:1"}
    graph = accept(wire([buffer(0, 3), destination, copy(0, "CUDA:1", 1)], [0], [1]))
    assert graph.types[1].device == "CUDA:1"
