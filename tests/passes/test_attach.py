"""Records as attributes of the IR, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialect.mlir import ir
from passes.attributes import decode, encode
from passes.cpu.loops import candidates as loops_candidates
from passes.schedule.attach import (
    FLOPS,
    PROGRAM,
    SCHEDULE,
    STRATEGY,
    kernel_functions,
    read_buffers,
    read_steps,
    schedule_of,
    work_of,
)
from passes.values import read_symbols
from tensorkiln import expr
from tensorkiln.build import Builder, matmul, pad, relu, scatter, softmax
from tensorkiln.expr import symbol, to_wire
from tensorkiln.graph import Graph
from tensorkiln.schedule import KernelItem
from tests.filecheck import check_ir
from tests.passes.modules import after, body, machine, output

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(codec="utf-8", exclude_characters="\0")),
)
KEYS = st.text("abcxyz_.0", min_size=1)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4))


def test_a_value_survives_as_an_attribute() -> None:
    @given(JSON)
    def survives(value: object) -> None:
        decoded = decode(encode(value))
        assert decoded == value
        assert _types(decoded) == _types(value)

    with ir.Context(), ir.Location.unknown():
        survives()


def _types(value: object) -> object:
    if isinstance(value, dict):
        return {key: _types(entry) for key, entry in sorted(value.items())}
    return [_types(entry) for entry in value] if isinstance(value, list) else type(value)


def test_a_value_survives_the_text_of_a_module() -> None:
    value = {"a": [1, True, None, 2.5, 'é\n"'], "b": {"c": []}}
    with ir.Context(), ir.Location.unknown():
        attribute = ir.Attribute.parse(str(encode(value)))
        assert decode(attribute) == value


def test_tuples_come_back_as_lists() -> None:
    with ir.Context(), ir.Location.unknown():
        assert decode(encode((1, (2,)))) == [1, [2]]


@pytest.mark.parametrize("value", [object(), {1, 2}, 1j])
def test_values_other_than_json_are_refused(value: object) -> None:
    with ir.Context(), ir.Location.unknown(), pytest.raises(TypeError, match="no attribute holds a"):
        encode(value)


def test_an_attribute_of_another_kind_is_refused() -> None:
    with ir.Context(), ir.Location.unknown(), pytest.raises(TypeError, match="holds no JSON-like value"):
        decode(ir.TypeAttr.get(ir.F32Type.get()))


def dense() -> Graph:
    b = Builder("dense")
    x, w, bias = (
        b.input("float32", (b.symbol("n", 1, 512), 64)),
        b.input("float32", (64, 48)),
        b.input("float32", (48,)),
    )
    return output(b, relu(matmul(x, w) + bias))


def normalised() -> Graph:
    b = Builder("softmax")
    return output(b, softmax(b.input("float32", (b.symbol("n", 1, 512), 100)), -1))


def scattered() -> Graph:
    b = Builder("scatter")
    return output(b, scatter(b.input("int32", (4, 8)), b.input("float32", (4, 8)), 1, (4, 16)))


def padded() -> Graph:
    b = Builder("padded")
    return output(b, pad(b.input("float32", (300_000,)), [(1, 1)]))


CASES = {"contraction": dense, "loops": normalised, "scatter": scattered, "pieces": padded}


@pytest.mark.parametrize("kind", CASES)
def test_a_schedule_survives_on_its_function(kind: str) -> None:
    module = after("schedule", CASES[kind]())
    (function,) = kernel_functions(module).values()
    (strategy, item), (flops, _) = schedule_of(function), work_of(function)
    assert strategy == ("loops" if kind == "pieces" else kind)
    with module.context:
        again = KernelItem.model_validate(decode(encode(item.model_dump(mode="json"))))
        assert again == item
        assert encode(to_wire(flops)) == function.attributes[FLOPS]
        assert ir.Attribute.parse(str(function.attributes[SCHEDULE])) == function.attributes[SCHEDULE]


def test_the_attached_record_is_the_choice_of_the_strategy() -> None:
    graph = normalised()
    choice = next(iter(loops_candidates(body(graph), machine())))
    module = after("schedule", graph)
    (function,) = kernel_functions(module).values()
    strategy, item = schedule_of(function)
    assert strategy == choice.strategy
    assert item == choice.item
    assert expr.free_symbols(item.context.global_dims[0]) == {"n"}
    assert expr.free_symbols(work_of(function)[0]) == {"n"}


def test_the_record_maps_every_axis_once() -> None:
    module = after("schedule", normalised())
    _, item = schedule_of(kernel_functions(module)["kernel_0"])
    mapping = item.iter.mapping
    assert sorted((*mapping.block, *mapping.thread, *mapping.vec, *mapping.serial)) == list(range(len(item.iter.axes)))
    assert [axis.size for axis in item.iter.axes if axis.role == "reduction"] == [100, 100]
    assert item.reduce is not None
    assert item.iter.axes[0].size == symbol("n")


def test_a_map_has_no_reduction_plan() -> None:
    module = after("schedule", padded())
    _, item = schedule_of(kernel_functions(module)["kernel_0"])
    assert item.reduce is None


def test_the_module_carries_the_plan() -> None:
    module = after("schedule", normalised())
    check_ir(
        module,
        f"""
        // CHECK: module attributes {{{PROGRAM} = {{{{.*}}}}arguments = [0]
        // CHECK: func.func private @kernel_0
        // CHECK-SAME: {FLOPS}
        // CHECK-SAME: {SCHEDULE}
        // CHECK-SAME: {STRATEGY} = "loops"
        """,
    )
    buffers = read_buffers(module)
    assert [buffer.id for buffer in buffers] == list(range(len(buffers)))
    assert [step.kernel for step in read_steps(module)] == ["kernel_0"]
    assert read_symbols(module) == {"n": (1, 512)}
