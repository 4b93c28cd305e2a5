"""What a module may grow to during its translation."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from stablehlo.constants import MAX_CONSTANT_ELEMENTS
from stablehlo.reading import MAX_NESTING, nesting
from stablehlo.translate import translate
from stablehlo.walk import MAX_DEPTH
from tensorkiln.errors import InvalidGraphError, LimitExceededError, UnsupportedGraphError
from tensorkiln.limits import MAX_NODES

from .modules import module

KIND = "tensor<4xf32>"


def _levels(count: int, calls: int) -> str:
    """Functions that call the next so many times each."""
    lines: list[str] = []
    for at in range(count):
        names = ["%x", *(f"%{turn}" for turn in range(calls))]
        steps = (f"{to} = func.call @f{at + 1}({of}) : ({KIND}) -> {KIND}" for of, to in pairwise(names))
        body = "\n".join([*steps, f"return {names[-1]} : {KIND}"])
        lines.append(f"func.func private @f{at}(%x: {KIND}) -> {KIND} {{ {body} }}")
    last = "%0 = stablehlo.tanh %x : tensor<4xf32> return %0 : tensor<4xf32>"
    lines.append(f"func.func private @f{count}(%x: tensor<4xf32>) -> tensor<4xf32> {{ {last} }}")
    call = "%r0 = func.call @f0(%a0) : (tensor<4xf32>) -> tensor<4xf32>"
    return module(["4xf32"], call, "4xf32", more="\n".join(lines))


def test_calls_that_multiply_end_at_the_nodes_of_a_graph() -> None:
    with pytest.raises(LimitExceededError) as caught:
        translate(_levels(40, 2))
    assert caught.value.details["limit"] == "nodes"
    assert caught.value.details["maximum"] == MAX_NODES


def test_calls_that_are_nested_too_deeply_are_over_a_limit() -> None:
    assert translate(_levels(MAX_DEPTH - 1, 1)).document["nodes"]
    with pytest.raises(LimitExceededError) as caught:
        translate(_levels(MAX_DEPTH, 1))
    assert caught.value.details["limit"] == "nesting"


def test_all_constants_together_have_a_limit() -> None:
    each = 1 << 16
    count = MAX_CONSTANT_ELEMENTS // each + 1
    lines: list[str] = []
    for at in range(count):
        digits = bytes([at + 1, *bytes(each * 4 - 1)]).hex()
        lines.append(f'%c{at} = stablehlo.constant dense<"0x{digits}"> : tensor<{each}xf32>')
        lines.append(f"%{at + 1} = stablehlo.add %{at}, %c{at} : tensor<{each}xf32>")
    body = f"%0 = stablehlo.negate %a0 : tensor<{each}xf32>\n" + "\n".join(lines)
    body += f"\n%r0 = stablehlo.negate %{count} : tensor<{each}xf32>"
    with pytest.raises(LimitExceededError) as caught:
        translate(module([f"{each}xf32"], body, f"{each}xf32"))
    assert caught.value.details["limit"] == "constants_elements"


def test_a_large_constant_is_over_a_limit_that_is_named_with_its_place() -> None:
    digits = bytes(4 * 70_000).hex().upper().replace("00", "01", 1)
    line = f'%r0 = stablehlo.constant dense<"0x{digits}"> : tensor<70000xf32> loc("weights.py":7:1)'
    with pytest.raises(LimitExceededError, match="argument") as caught:
        translate(module([], line, "70000xf32"))
    details = caught.value.details
    assert (details["location"], details["maximum"], details["actual"]) == ("weights.py:7:1", 65536, 70_000)


def test_a_constant_that_is_repeated_takes_nothing() -> None:
    body = """
    %c = stablehlo.constant dense<2.0> : tensor<1048576x1048576xf32>
    %0 = stablehlo.slice %c [0:2, 0:2] : (tensor<1048576x1048576xf32>) -> tensor<2x2xf32>
    %1 = stablehlo.reshape %0 : (tensor<2x2xf32>) -> tensor<4xf32>
    %r0 = stablehlo.add %a0, %1 : tensor<4xf32>"""
    assert translate(module(["4xf32"], body, "4xf32")).document["nodes"]


def test_equal_constants_are_one() -> None:
    line = "stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>"
    body = f"""
    %c = {line}
    %d = {line}
    %0 = stablehlo.add %a0, %c : tensor<4xf32>
    %r0 = stablehlo.add %0, %d : tensor<4xf32>"""
    document = translate(module(["4xf32"], body, "4xf32")).document
    assert [node["node"] for node in document["nodes"]].count("vconst") == 1


def test_brackets_are_counted_outside_of_strings_and_comments() -> None:
    assert nesting(b'a ( "((((" [ // ((((\n < > ] ) -> (x)') == 3


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("module {}", InvalidGraphError, "no function @main"),
        ("func.func @main() { return }", InvalidGraphError, "no result"),
        ("func.func private @main(tensor<f32>) -> tensor<f32>", UnsupportedGraphError, "0 blocks"),
        (
            "func.func @main(%a: tensor<f32>) -> tensor<f32> { cf.br ^b  ^b: return %a : tensor<f32> }",
            UnsupportedGraphError,
            "2 blocks",
        ),
        ("func.func @main(%a: f32) -> f32 { return %a : f32 }", UnsupportedGraphError, "not a ranked tensor"),
        (
            module(["f32"], '%r0 = "x.y"(%a0) : (tensor<f32>) -> tensor<f32>', "f32"),
            UnsupportedGraphError,
            "x.y at",
        ),
        (
            module(
                ["f32"],
                "%r0 = func.call @f(%a0) : (tensor<f32>) -> tensor<f32>",
                "f32",
                more="""func.func private @f(%x: tensor<f32>) -> tensor<f32> {
                  %0 = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
                  return %0 : tensor<f32>
                }""",
            ),
            UnsupportedGraphError,
            "its function calls itself",
        ),
        *(
            (
                module([f"4x{kind}"], f"%r0 = stablehlo.add %a0, %a0 : tensor<4x{kind}>", f"4x{kind}"),
                UnsupportedGraphError,
                "Argument 0 of @main",
            )
            for kind in ("f8E4M3FN", "i4", "!quant.uniform<i8:f32, 0.1>")
        ),
    ],
)
def test_modules_of_other_dialects_are_refused(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        translate(text)


def test_a_value_of_too_many_elements_is_over_a_limit() -> None:
    for kind in ("2147483648x2147483648xi64", "0x9223372036854775807x9223372036854775807xi64"):
        body = f"""
        %c = stablehlo.constant dense<{0 if kind[0] == "2" else ""}> : tensor<{kind}>
        %r0 = stablehlo.negate %a0 : tensor<4xf32>"""
        with pytest.raises(LimitExceededError) as caught:
            translate(module(["4xf32"], body, "4xf32"))
        assert caught.value.details["limit"] == "elements"
        assert caught.value.details["op"] == "stablehlo.constant"


@pytest.mark.parametrize("opening", ["module {", "(", "tensor<", '"a"('])
def test_brackets_without_end_are_over_a_limit(opening: str) -> None:
    with pytest.raises(LimitExceededError) as caught:
        translate(opening * 10_000)
    assert caught.value.details == {"limit": "nesting", "maximum": MAX_NESTING, "actual": 10_000}


def test_operators_close_no_bracket() -> None:
    assert nesting(b"(a >= (b => (c -> (d >= (e") == 5
    # What opens is counted, whatever it is.
    assert nesting(b"(<=> (<=> (") >= 3


def test_a_string_that_does_not_end_is_refused() -> None:
    # Looked for from each of its quotes, its end would take hours.
    with pytest.raises(InvalidGraphError, match="A string in line 2 of the module does not end"):
        nesting(b"()\n" + b'"' + b'\\"' * 1_000_000)


def test_a_type_that_is_no_tensor_is_named_by_its_class() -> None:
    lines = ["!t0 = tuple<f32, f32>", *(f"!t{at} = tuple<!t{at - 1}, !t{at - 1}>" for at in range(1, 24))]
    text = "\n".join([*lines, "func.func @main(%a: !t23) -> !t23 { return %a : !t23 }"])
    with pytest.raises(UnsupportedGraphError, match="a value of TupleType is not a ranked tensor"):
        translate(text)


def test_the_name_of_an_operation_is_cut_and_printable() -> None:
    with pytest.raises(UnsupportedGraphError) as caught:
        translate(module(["f32"], f'%r0 = "x.{"y" * 10_000}\u202e"(%a0) : (tensor<f32>) -> tensor<f32>', "f32"))
    assert caught.value.details["op"] == f"x.{'y' * 97}…"
    assert len(caught.value.message) < 400


def test_an_assertion_without_an_operand_is_invalid() -> None:
    body = """
    stablehlo.custom_call @shape_assertion() {has_side_effect = true} : () -> ()
    %r0 = stablehlo.negate %a0 : tensor<f32>"""
    with pytest.raises(InvalidGraphError, match="an assertion about shapes has no operand"):
        translate(module(["f32"], body, "f32"))


def test_a_function_that_gives_its_argument_is_a_graph_of_it() -> None:
    found = translate(module(["4xf32"], "", "4xf32").replace("%r0", "%a0"))
    assert [node["node"] for node in found.document["nodes"]] == ["placeholder"]
    assert found.document["output_vars"] == found.document["input_vars"]
    assert found.places == ("",)


def test_a_name_that_is_no_text_is_refused() -> None:
    artifact = (Path(__file__).parent / "exported" / "numbers.mlirbc").read_bytes()
    assert b"main\0" in artifact
    with pytest.raises(InvalidGraphError, match="A name in the module is not UTF-8"):
        translate(artifact.replace(b"main\0", b"ma\xffn\0"))
