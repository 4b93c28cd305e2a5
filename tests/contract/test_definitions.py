"""Which node defines which var, and what inputs and outputs may be."""

from typing import Any

from tests.contract.test_inferred_types import METADATA, F, node
from tests.contract.wire import OUT, Wire, accept, placeholder, refuse, wire

X = placeholder(0, F, [2, 3])
NEG: Wire = {"node": "unary", "op": "neg", "in_var": 0, "out_var": 1, "dtype": F}


def buffer(var: int, size: Any, dtype: str = F) -> Wire:
    return {"node": "buffer", "dtype": dtype, "size_in_elements": size, "device": "CPU", "out_var": var}


def assign(target: int, source: int, out: int) -> Wire:
    return {"node": "assign", "target_var": target, "updates": [[source, target, None]], "out_var": out, "dtype": F}


def test_a_buffer_declares_where_one_later_node_puts_its_result() -> None:
    graph = accept(wire([X, buffer(1, 6), NEG], [0], [1]))
    assert graph.types[1].shape == (2, 3)


def test_a_destination_has_the_dtype_and_the_size_of_the_result() -> None:
    refuse(wire([X, buffer(1, 5), NEG], [0], [1]), pointer="/nodes/2/out_var")
    refuse(wire([X, buffer(1, 6, "int32"), NEG], [0], [1]), pointer="/nodes/2/dtype")


def test_a_destination_whose_size_cannot_be_proven_is_not_supported() -> None:
    nodes = [placeholder(0, F, ["n"]), buffer(1, "m"), NEG]
    refuse(wire(nodes, [0], [1], {"n": (1, 4), "m": (1, 4)}), "graph.unsupported", "/nodes/2/out_var")


def test_a_destination_is_not_read_before_it_is_written() -> None:
    read = {**NEG, "in_var": 1, "out_var": 5}
    error = refuse(wire([X, buffer(1, 6), read, NEG], [0], [1]), pointer="/nodes/2/in_var")
    assert "before" in error.message
    refuse(wire([X, buffer(1, 6), {**NEG, "in_var": 1}], [0], [1]), pointer="/nodes/2/in_var")


def test_any_other_second_definition_is_refused() -> None:
    refuse(wire([X, NEG, NEG], [0], [1]), pointer="/nodes/2/out_var")
    refuse(wire([X, NEG, buffer(1, 6)], [0], [1]), pointer="/nodes/2/out_var")
    refuse(wire([X, buffer(1, 6), buffer(1, 6)], [0], [1]), pointer="/nodes/2/out_var")
    refuse(wire([X, buffer(1, 6), NEG, NEG], [0], [1]), pointer="/nodes/3/out_var")
    refuse(wire([X, buffer(1, 6), buffer(1, 6), NEG], [0], [1]), pointer="/nodes/2/out_var")
    refuse(wire([X, {**NEG, "out_var": 0}], [0], [0]), pointer="/nodes/1/out_var")


def test_an_assign_may_define_the_buffer_that_it_updates() -> None:
    read = {**NEG, "in_var": 1, "out_var": 5}
    nodes = [X, placeholder(2, F, [6]), buffer(1, 6), read, assign(1, 2, 1), {**read, "out_var": 6}]
    graph = accept(wire(nodes, [0, 2, 1], [5, 6, 1]))
    assert graph.types[1].shape == (6,)
    refuse(wire([*nodes, assign(1, 2, 1)], [0, 2, 1], [1]), pointer="/nodes/6/out_var")
    refuse(wire([X, placeholder(2, F, [2, 3]), assign(0, 2, 0)], [0, 2], [0]), pointer="/nodes/2/out_var")


def test_an_assign_in_a_kernel_may_define_the_buffer_that_it_updates() -> None:
    kernel = {
        "node": "kernel", "ast": assign(1, 2, 1), "input_vars": [1, 2], "output_vars": [1], "metadata": METADATA,
        "out_var": 1, "dtype": F,
    }  # fmt: skip
    accept(wire([placeholder(2, F, [6]), buffer(1, 6), kernel], [2], [1]))


def test_placeholders_of_one_input_may_repeat_but_not_disagree() -> None:
    accept(wire([X, NEG, X, X], [0], [1]))
    accept(wire([buffer(0, 6), X, NEG, X], [0], [1]))
    refuse(wire([X, placeholder(0, F, [3, 2])], [0], []), pointer="/nodes/1/out_var")


def test_a_var_is_defined_before_it_is_read() -> None:
    refuse(wire([NEG, X], [0], [1]), pointer="/nodes/0/in_var")
    refuse(wire([X, assign(0, 9, 1)], [0], [1]), pointer="/nodes/1/updates")
    refuse(wire([X, {"node": "sink", "deps": [0, 9], "dtype": "unit"}], [0], []), pointer="/nodes/1/deps")
    refuse(wire([X, node("cat", F, in_vars=[0, OUT], axis=0)], [0], []), pointer="/nodes/1/in_vars")


def test_inputs_are_placeholders_or_buffers() -> None:
    accept(wire([buffer(0, 6), NEG], [0], [1]))
    refuse(wire([X, NEG], [0, 1], [1]), pointer="/input_vars/1")
    refuse(wire([X, NEG], [0, 7], [1]), pointer="/input_vars/1")
    refuse(wire([X, NEG], [0, 0], [1]), pointer="/input_vars/1")
    refuse(wire([X, buffer(1, 6), NEG], [0, 1], [1]), pointer="/input_vars/1")
    refuse(wire([X, NEG], [], [1]), pointer="/nodes/0/out_var")


def test_outputs_are_defined_and_may_repeat_or_be_inputs() -> None:
    accept(wire([X, NEG], [0], [1, 0, 1]))
    refuse(wire([X, NEG], [0], [1, 7]), pointer="/output_vars/1")


def test_unused_inputs_dead_nodes_and_metadata_of_unknown_vars_are_legal() -> None:
    accept(wire([X, placeholder(3, F, [1]), NEG], [0, 3], [0], metadata={77: (F, [1])}))


def test_a_graph_may_be_empty() -> None:
    assert accept(wire([], [], [])).types == {}
