"""The JSON of a graph: strict, and every error of ours."""

import copy
import json
from typing import Any

import pytest

from tensorkiln import limits
from tensorkiln.errors import InvalidGraphError, LimitExceededError, TensorkilnError
from tensorkiln.graph import Graph, json_schema
from tensorkiln.nodes import NODE_KINDS
from tensorkiln.nodes.problems import json_depth
from tests.contract.test_inferred_types import CASES, METADATA, F
from tests.contract.wire import Wire, accept, placeholder, refuse, wire

GRAPH = {
    **wire(
        [placeholder(1, F, [4, "n"]), {"node": "unary", "op": "neg", "in_var": 1, "out_var": 2, "dtype": F}],
        [1],
        [2],
        {"n": (1, 10)},
        {2: (F, [4, "n"])},
    )
}


def changed(path: tuple[str | int, ...], value: Any) -> Wire:
    graph: Any = copy.deepcopy(GRAPH)
    spot = graph
    for step in path[:-1]:
        spot = spot[step]
    spot[path[-1]] = value
    return graph


@pytest.mark.parametrize(
    ("path", "value", "pointer"),
    [
        (("nodes", 1, "in_var"), "1", "/nodes/1/in_var"),
        (("nodes", 1, "in_var"), True, "/nodes/1/in_var"),
        (("nodes", 1, "in_var"), 1.0, "/nodes/1/in_var"),
        (("nodes", 1, "in_var"), -1, "/nodes/1/in_var"),
        (("nodes", 1, "in_var"), 2**63, "/nodes/1/in_var"),
        (("nodes", 1, "in_var"), None, "/nodes/1/in_var"),
        (("nodes", 1, "op"), "NEG", "/nodes/1/op"),
        (("nodes", 1, "dtype"), "f32", "/nodes/1/dtype"),
        (("nodes", 1, "node"), "neg", "/nodes/1"),
        (("nodes", 1), {"op": "neg"}, "/nodes/1"),
        (("nodes", 1), 7, "/nodes/1"),
        (("nodes", 1, "a~b/c"), 1, "/nodes/1/a~0b~1c"),
        (("nodes", 0, "shape", 0), True, "/nodes/0/shape/0"),
        (("nodes", 0, "shape", 0), 2**63, "/nodes/0/shape/0"),
        (("nodes", 0, "shape", 0), 4.0, "/nodes/0/shape/0"),
        (("nodes", 0, "shape", 1), "n m", "/nodes/0/shape/1"),
        (("nodes", 0, "shape", 1), {"op": "add", "args": [1]}, "/nodes/0/shape/1"),
        (("nodes", 0, "shape", 1), {"op": "pow", "args": [1, 2]}, "/nodes/0/shape/1"),
        (("nodes", 0, "shape", 1), {"op": "floordiv", "args": ["n", 0]}, "/nodes/0/shape/1"),
        (("nodes", 0, "shape"), "n", "/nodes/0/shape"),
        (("vars_metadata", "02"), {"dtype": F, "shape": []}, "/vars_metadata/02"),
        (("vars_metadata", "x"), {"dtype": F, "shape": []}, "/vars_metadata/x"),
        (("vars_metadata", "2", "rank"), 2, "/vars_metadata/2/rank"),
        (("vars_metadata", "2", "device"), "GPU", "/vars_metadata/2/device"),
        (("symbolic_vars", 0, "min_val"), "1", "/symbolic_vars/0/min_val"),
        *(
            (("symbolic_vars", 0, "name"), name, "/symbolic_vars/0/name")
            for name in ("1n", "n" * 65, "", "0", "a-b", "a b", "é", "a\n", "a\x00", ".a")
        ),
        (("name",), "n" * 65, "/name"),
        (("name",), "two words", "/name"),
        (("version",), 1, "/version"),
        (("input_vars",), None, "/input_vars"),
        (("schema",), "1", "/schema"),
        (("schema",), True, "/schema"),
        (("schema",), 1.0, "/schema"),
    ],
)
def test_a_field_of_another_type_is_refused_where_it_stands(
    path: tuple[str | int, ...], value: Any, pointer: str
) -> None:
    accept(GRAPH)
    refuse(changed(path, value), pointer=pointer)


def test_a_name_may_have_64_characters() -> None:
    name = "n" * 64
    accept({**wire([placeholder(0, F, [name])], [0], [0], {name: (1, 2)}), "name": name})


@pytest.mark.parametrize("field", ["schema", "nodes", "input_vars", "output_vars"])
def test_a_missing_field_is_refused(field: str) -> None:
    refuse({name: value for name, value in GRAPH.items() if name != field}, pointer=f"/{field}")


def test_another_schema_is_not_supported() -> None:
    refuse(changed(("schema",), 2), "graph.unsupported", "/schema")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"graph"', '{"schema": 1,}', "\x00", "{'schema': 1}"])
def test_json_other_than_an_object_is_invalid(text: str) -> None:
    with pytest.raises(InvalidGraphError):
        Graph.model_validate_json(text)


def test_text_may_be_bytes_and_must_be_utf_8() -> None:
    assert Graph.model_validate_json(json.dumps(GRAPH).encode()) == accept(GRAPH)
    with pytest.raises(InvalidGraphError):
        Graph.model_validate_json(b'{"schema": 1, "name": "\xff"}')


def exceeded(graph: Wire, limit: str, maximum: int, actual: int) -> TensorkilnError:
    error = refuse(graph, "limit.exceeded")
    assert error.details == {"limit": limit, "maximum": maximum, "actual": actual}
    return error


def test_every_limit_is_answered_with_its_name_the_maximum_and_the_value() -> None:
    exceeded(wire([placeholder(0, F, [1] * 17)], [0], []), "rank", 16, 17)
    exceeded(wire([], [], [], {f"s{number}": (0, 1) for number in range(33)}), "symbols", 32, 33)
    exceeded(wire([placeholder(0, F, [1 << 24, (1 << 24) + 1])], [0], []), "elements", 1 << 48, (1 << 48) + (1 << 24))
    exceeded(wire([placeholder(0, F, [1 << 39])], [0], []), "buffer_bytes", 1 << 40, 1 << 41)
    exceeded(wire([{"node": "sink", "deps": [], "dtype": "unit"}] * 50_001, [], []), "nodes", 50_000, 50_001)


def test_symbols_of_define_vars_count_too() -> None:
    defines = [
        {
            "node": "define_var",
            "sym_var": {"name": f"d{number}", "min_val": 0, "max_val": 1},
            "out_var": number,
            "dtype": "int32",
        }
        for number in range(2)
    ]  # fmt: skip
    exceeded(wire(defines, [], [], {f"s{number}": (0, 1) for number in range(31)}), "symbols", 32, 33)


def test_a_value_that_is_never_stored_may_be_larger_than_a_buffer() -> None:
    expand = {"node": "expand", "in_var": 0, "new_target_shape": [1 << 47], "out_var": 1, "dtype": F}
    accept(wire([placeholder(0, F, [1]), expand], [0], []))
    exceeded(wire([placeholder(0, F, [1]), expand], [0], [1]), "buffer_bytes", 1 << 40, 1 << 49)


def test_a_size_that_symbols_may_push_over_a_limit_is_a_condition_on_the_call() -> None:
    graph = accept(wire([placeholder(0, F, ["n", "n"])], [0], [], {"n": (1, 1 << 31)}))
    assert [(found.kind, found.left, found.pointer) for found in graph.constraints] == [
        ("ge", limits.MAX_ELEMENTS, "/nodes/0"),
        ("ge", limits.MAX_BUFFER_BYTES, "/input_vars/0"),
    ]


def nested_expression(depth: int) -> Any:
    expression: Any = "n"
    for _ in range(depth - 1):
        expression = {"op": "neg", "args": [expression]}
    return expression


def test_an_expression_has_at_most_64_levels() -> None:
    accept(wire([placeholder(0, F, [nested_expression(64)])], [0], [], {"n": (-3, 0)}))
    exceeded(wire([placeholder(0, F, [nested_expression(65)])], [0], [], {"n": (0, 3)}), "expression_depth", 64, 65)


def kernel(depth: int) -> Wire:
    node: Wire = {"node": "unary", "op": "neg", "in_var": 0, "out_var": 1, "dtype": F}
    for _ in range(depth):
        node = {
            "node": "kernel", "ast": node, "input_vars": [0], "output_vars": [1], "metadata": METADATA,
            "out_var": 1, "dtype": F,
        }  # fmt: skip
    return node


def test_kernels_nest_to_a_limit() -> None:
    accept(wire([placeholder(0, F, [3]), kernel(32)], [0], [1]))
    exceeded(wire([placeholder(0, F, [3]), kernel(33)], [0], [1]), "kernel_depth", 32, 33)


@pytest.mark.parametrize("depth", [150, 400])
def test_deep_nesting_is_an_error_and_no_crash(depth: int) -> None:
    for graph in (
        wire([placeholder(0, F, [3]), kernel(depth)], [0], [1]),
        wire([placeholder(0, F, [nested_expression(depth)])], [0], []),
    ):
        error = refuse(graph, "limit.exceeded")
        assert error.details["actual"] > error.details["maximum"]


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"nodes":[{"ast":', '{"nodes":[{"node":"kernel","ast":'])
def test_brackets_without_end_are_an_error_and_no_crash(opening: str) -> None:
    with pytest.raises(LimitExceededError) as caught:
        Graph.model_validate_json(opening * 100_000)
    assert caught.value.details["limit"] == "json_depth"


def test_a_text_over_the_limit_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorkiln.graph.MAX_BODY_BYTES", 10)
    with pytest.raises(LimitExceededError) as caught:
        Graph.model_validate_json(json.dumps(GRAPH))
    assert caught.value.details["limit"] == "body_bytes"


def test_the_json_schema_describes_every_node_kind() -> None:
    schema = json_schema()
    mapping = schema["properties"]["nodes"]["items"]["discriminator"]["mapping"]
    assert set(mapping) == set(NODE_KINDS)
    assert schema["$defs"]["Reshape"]["properties"]["new_shape"]["items"] == {"$ref": "#/$defs/Dimension"}
    assert "int64" in schema["x-extensions"]["dtypes"]
    assert schema["x-extensions"]["unary"] == ["trunc"]
    assert "trunc" in schema["$defs"]["UnaryKind"]["enum"]
    json.dumps(schema)


@pytest.mark.parametrize("tested", [case[0] for case in CASES], ids=[case[0]["node"] for case in CASES])
def test_an_unknown_field_of_any_node_is_refused(tested: Wire) -> None:
    refuse(wire([{**tested, "comment": "x"}], [], []), pointer="/nodes/0/comment")


def test_a_graph_is_immutable_and_validated_once() -> None:
    graph = accept(GRAPH)
    with pytest.raises(Exception, match="frozen"):
        graph.name = "other"  # type: ignore[misc]
    assert Graph.model_validate(graph) is graph


def test_brackets_in_strings_do_not_nest() -> None:
    assert json_depth('{"a": "[[[[\\"[[", "b": [[]]}') == 3
    assert json_depth(b"") == 0


@pytest.mark.parametrize("escape", ["", '"\\"[[", '])
@pytest.mark.parametrize("depth", [0, 1, 200, 20_000, 100_000])
def test_the_depth_of_a_long_text_is_found_wherever_it_is_deepest(depth: int, escape: str) -> None:
    shallow, deep = ('{"[[": ["]{"]}, ' * 5_000, '[{"]": ' * depth + "0" + "}]" * depth)
    assert json_depth(f"[{shallow}{escape}{deep}, {shallow}0]") == max(1 + 2 * depth, 3)
