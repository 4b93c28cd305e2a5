"""Dims as JSON and as text, and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from tensorkiln import expr
from tensorkiln.expr import (
    Dim,
    Expr,
    ExprError,
    ExprLimitError,
    WireDim,
    from_wire,
    parse_text,
    symbol,
    to_text,
    to_wire,
)
from tests.expr.dims import EVERY_SETTING, Sample, samples

N = symbol("n")


@given(samples())
def test_the_text_of_a_dim_parses_to_it(sample: Sample) -> None:
    parsed = parse_text(to_text(sample.dim))
    assert parsed == sample.dim
    for env in EVERY_SETTING[::7]:
        try:
            wanted = sample.value(env)
        except ZeroDivisionError:
            continue
        assert expr.evaluate(parsed, env) == wanted


@given(samples())
def test_the_json_of_a_dim_reads_back_as_it(sample: Sample) -> None:
    assert from_wire(json.loads(json.dumps(to_wire(sample.dim)))) == sample.dim


@pytest.mark.parametrize(
    ("wire", "text"),
    [
        (5, "5"),
        ("n", "n"),
        ({"op": "sub", "args": ["n", 1]}, "n + -1"),
        ({"op": "neg", "args": ["n"]}, "-1*n"),
        ({"op": "mul", "args": ["n", "m", 2]}, "2*m*n"),
        ({"op": "floordiv", "args": [{"op": "add", "args": ["n", 3]}, 4]}, "floordiv(n + 3, 4)"),
        ({"op": "max", "args": ["n", 3, "m"]}, "max(m, n, 3)"),
        ({"op": "mod", "args": ["s0.x_1", "m"]}, "mod(s0.x_1, m)"),
    ],
)
def test_json_reads_as_the_canonical_form(wire: Any, text: str) -> None:
    assert to_text(from_wire(wire)) == text


@pytest.mark.parametrize(
    "wire",
    [
        *(True, 1.5, None, [], "", "1n", "a b", "é", "n" * 65),
        {"op": "add"},
        {"op": "add", "args": ["n"]},
        {"op": "neg", "args": ["n", 1]},
        {"op": "sub", "args": ["n", 1, 2]},
        {"op": "pow", "args": ["n", 2]},
        {"op": ["add"], "args": ["n", 2]},
        {"op": "add", "args": "nm"},
        {"op": "add", "args": ["n", 1], "more": 1},
        {"op": "floordiv", "args": ["n", 0]},
        {"op": "mul", "args": [{"op": "add", "args": ["n", True]}, 2]},
    ],
)
def test_invalid_json_of_a_dim_is_refused(wire: Any) -> None:
    with pytest.raises(ExprError):
        from_wire(wire)


def nested(levels: int) -> Any:
    """JSON of `levels` levels whose canonical form is as deep."""
    wire: Any = "n"
    for _ in range(levels - 1):
        wire = {"op": "floordiv", "args": [wire, "m"]}
    return wire


def test_sixty_four_levels_are_read_and_written() -> None:
    dim = from_wire(nested(64))
    assert isinstance(dim, Expr)
    assert expr.depth(dim) == 64
    assert from_wire(to_wire(dim)) == dim


def test_sixty_five_levels_are_refused() -> None:
    with pytest.raises(ExprLimitError) as raised:
        from_wire(nested(65))
    assert (raised.value.limit, raised.value.maximum, raised.value.actual) == ("expression_depth", 64, 65)


def test_a_dim_that_is_read_round_trips() -> None:
    wire: Any = "n"
    for _ in range(31):
        wire = {"op": "floordiv", "args": [{"op": "sub", "args": [1, wire]}, "m"]}
    dim = from_wire(wire)
    assert from_wire(to_wire(dim)) == dim


def test_a_hundred_thousand_levels_are_refused_as_fast() -> None:
    with pytest.raises(ExprLimitError):
        from_wire(nested(100_000))


def test_a_symbol_may_be_called_like_an_operation() -> None:
    dim = expr.add(symbol("floordiv"), expr.floordiv(symbol("max"), 2))
    assert parse_text(str(dim)) == dim


@pytest.mark.parametrize(
    "text", ["", "n +", "n n", "+n", "floordiv(n", "floordiv(n,)", "max()", "(n)", "n-1", "n$", "2**n", "pow(n, 2)"]
)
def test_invalid_text_of_a_dim_is_refused(text: str) -> None:
    with pytest.raises(ExprError, match="not the text of a dimension"):
        parse_text(text)


@pytest.mark.parametrize("text", ["floordiv(n)", "mod(n, 2, 3)"])
def test_a_call_with_the_wrong_number_of_arguments_is_refused(text: str) -> None:
    with pytest.raises(ExprError):
        parse_text(text)


class Record(BaseModel):
    """A record with a dim."""

    size: WireDim


@given(st.one_of(st.integers(), samples().map(lambda sample: sample.dim)))
def test_a_field_reads_and_writes_a_dim(dim: Dim) -> None:
    record = Record(size=dim)
    assert Record.model_validate_json(record.model_dump_json()) == record
    assert record.model_dump(mode="json") == {"size": to_wire(dim)}


def test_a_field_refuses_what_is_no_dim() -> None:
    with pytest.raises(ValidationError, match="a dimension is an integer, a symbol's name"):
        Record.model_validate({"size": 1.5})


def test_a_field_publishes_its_schema() -> None:
    choices = Record.model_json_schema()["properties"]["size"]["anyOf"]
    assert [choice["type"] for choice in choices] == ["integer", "string", "object"]
    assert set(choices[2]["properties"]["op"]["enum"]) >= {"add", "floordiv", "max", "neg"}
