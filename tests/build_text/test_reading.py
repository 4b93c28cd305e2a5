"""Lines of the builder as text: they write what Python would, and whatever is no such line is refused at its place."""

from __future__ import annotations

import ast
import random
from typing import Any

import pytest

from tensorkiln import build
from tensorkiln.build_text import MAX_NESTING, MAX_TEXT_BYTES, names, read_builder_text, reading
from tensorkiln.errors import InvalidGraphError, LimitExceededError, TensorkilnError, UnsupportedGraphError
from tensorkiln.graph import Graph
from tests.snippets import ROOT, blocks

IMPORT = "from tensorkiln.build import *\nfrom tensorkiln.build import Builder, absolute as magnitude\n"
INPUT = 'b = Builder("g")\nn = b.symbol("n", 1, 64)\nx = b.input("float32", (n, 4))\n'
TEXTS = {
    "layer": 'w = b.parameter("float32", (4, 8), name="w")\ny = relu(x @ w)\nb.output(y, y.sum(axis=1, keepdims=True))',
    "operators": "y = -x ** 2 / 3 - abs(x) * (2 ** 3)\nz = (x < 0) | ~(y >= 1.0)\nb.output(where(z, y, float('-inf')))",
    "indices": "b.output(x[: n // 2, ::-1], x[..., None, 1:3], x[0], x.shape[1] * x, x.T)",
    "several": "(p, q), r = split(x, [1, 3], 1), n * 2\n[s, t] = p, q\nb.output(cat([s, t, s], 1), dim_value(b, r))",
    "constants": "t = b.constant([[1.5, -2], [3, 4]])\nb.output(t, full(b, (n,), True, 'bool'), ones(b, [n], x.dtype))",
    "scatter": "i = b.input('int64', (n, 1))\nb.output(scatter(expand(i, x.shape), x, 0, into=x, reduction='add'))",
    "renamed": "from tensorkiln.build import softmax as soft\nb.output(soft(magnitude(x), axis=-1))\ngraph = b.graph()",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_writes_the_graph_that_python_does(name: str) -> None:
    text = INPUT + TEXTS[name]
    namespace: dict[str, Any] = {}
    exec(IMPORT + text, namespace)
    read = read_builder_text(IMPORT.splitlines()[1] + "\n" + text)
    assert Graph.model_validate(read.document).to_json() == namespace["b"].graph().to_json()


def test_the_builder_of_the_manual_is_read_up_to_its_first_array() -> None:
    (first, *_) = blocks(ROOT / "docs" / "build.md", "python")
    lines = first.text.partition("graph = ")[0].replace("import numpy as np\n", "")
    text = "\n".join(line for line in lines.splitlines() if "reference" not in line)
    assert [each["node"] for each in read_builder_text(text).document["nodes"]][:2] == ["placeholder", "placeholder"]


def test_each_node_has_the_place_of_what_wrote_it() -> None:
    read = read_builder_text(INPUT + "y = relu(\n    x * 2)\nb.output(y)")
    kinds = [each["node"] for each in read.document["nodes"]]
    assert len(read.places) == len(kinds)
    assert read.places[0] == "line 3, column 5"
    assert set(read.places[1:]) == {"line 4, column 5", "line 5, column 5"}


def test_columns_count_characters() -> None:
    with pytest.raises(InvalidGraphError, match=r"^line 1, column 8: there is no 'y'"):
        read_builder_text("é, ü = y, 1")


REFUSED = [
    *("for i in x: pass", "while x: pass", "if x: pass", "def f(): pass", "class C: pass", "with x: pass"),
    *(
        "async def f(): pass",
        "try: pass\nexcept E: pass",
        "del x",
        "raise x",
        "assert x",
        "global x",
        "match x:\n case 1: pass",
    ),
    *(
        "import os",
        "from os import system",
        "from . import build",
        "from tensorkiln import Client",
        "x: int = 1",
        "x += 1",
    ),
    *("x.shape = 1", "x[0] = 1", "y = lambda: 1", "y = [i for i in x]", "y = {i for i in x}", "y = {1: x}", "y = {1}"),
    *(
        "y = (i for i in x)",
        "y = x if x else x",
        "y = f'{x}'",
        "y = x and x",
        "y = not x",
        "y = (z := x)",
        "y = 1j",
        "y = b''",
    ),
    *(
        "y = 1 < x < 2",
        "y = x in x",
        "y = x is x",
        "relu(*x)",
        "relu(**x)",
        "y = x[0](1)",
        "b.__class__.__bases__[0]()",
        "y = (lambda: 1)()",
        "y = ...",
    ),
]


@pytest.mark.parametrize("line", REFUSED)
def test_any_other_construct_is_refused_with_its_place(line: str) -> None:
    with pytest.raises(UnsupportedGraphError, match=r"^line 4, column \d+: .* not read") as refused:
        read_builder_text(INPUT + line)
    assert refused.value.details["line"] == 4
    assert refused.value.details["column"] >= 1
    assert hasattr(ast, refused.value.details["construct"])


MISTAKES = [
    ("y", "no effect"),
    ("y = z", "there is no 'z' yet"),
    ("y = relu", "is a function; call it"),
    ("y = rellu(x)", "did you mean relu"),
    ("y = x(x)", "is a Tensor, not a function"),
    ("y = relu()", "missing a required argument"),
    ("y = relu(x, z=1)", "unexpected keyword argument 'z'"),
    ("y = x.builder", "a Tensor has no 'builder'"),
    ("y = x.__class__", "a Tensor has no '__class__'"),
    ("y = b._nodes", "a Builder has no '_nodes'"),
    ("y = b.input('f32', (3,))", "f32"),
    ("y = b.constant([[[1] * 2 ** 40]])", "line 4, column 18: "),
    ("y = x.relu.__globals__", "relu is a method; call it"),
    ("y = 'a'.format(x)", "a str has no method 'format'"),
    ("y = 'a' * 9", "a str cannot be an operand"),
    ("y = 2 ** 10 ** 10", "64 bits"),
    ("y = 1 << 9999999999", "64 bits"),
    ("y = (-1) ** 0.5", "complex"),
    ("y = 1 // 0", "by zero"),
    ("y = 1 < 2", "a comparison is of tensors"),
    ("y, z = x, x, x", "2 names for 3 values"),
    ("y, z = x", "a Tensor is not several values"),
    ("y = b.constant([x])", "no values while the graph is being written"),
    ("y = while_loop(x, x, [x])", "takes functions"),
    ("y = float('1')", "makes a number of"),
    ("c = Builder()", "there is a builder already"),
    ("open('/etc/passwd')", "there is no function 'open'"),
    ("eval('1')", "there is no function 'eval'"),
    ("y = __import__('os')", "there is no function '__import__'"),
    ("from tensorkiln.build import nothing", "has no 'nothing'"),
    ("y = (1", "never closed"),
    ("y = 9" + "9" * 5000, "thousands of digits"),
    ("y = 1\0", "null bytes"),
]


@pytest.mark.parametrize(("line", "said"), MISTAKES)
def test_a_mistake_is_an_error_at_its_place(line: str, said: str) -> None:
    with pytest.raises(InvalidGraphError, match=said) as wrong:
        read_builder_text(INPUT + line)
    assert wrong.value.details["line"] in (4, 1)
    assert wrong.value.message.startswith("line ")
    assert len(wrong.value.message) < 500


def test_a_text_without_a_builder_or_an_output_is_an_invalid_graph() -> None:
    with pytest.raises(InvalidGraphError, match="makes no builder"):
        read_builder_text("x = 1")
    with pytest.raises(InvalidGraphError, match="no output"):
        read_builder_text(INPUT)


DOUBLING = "\n".join(["v0 = [1, 1]", *(f"v{at + 1} = [v{at}, v{at}]" for at in range(60))])
BEYOND = {
    "builder_bytes": "#" * MAX_TEXT_BYTES,
    "builder_nesting": "y = " + "1 + " * MAX_NESTING + "1",
    "builder_elements": DOUBLING,
    "rank": f"y = x.expand([{'1, ' * 20}n, 4])",
    "nodes": "y = gelu(gelu(gelu(x)))",
}


@pytest.mark.parametrize("limit", BEYOND)
def test_a_text_beyond_a_limit_is_refused_by_it(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if limit == "nodes":
        # A text of the longest length comes to half as many as the limit.
        monkeypatch.setattr(reading, "MAX_NODES", 30)
    with pytest.raises(LimitExceededError) as refused:
        read_builder_text(INPUT + BEYOND[limit])
    assert refused.value.details["limit"] == limit
    assert refused.value.details["actual"] > refused.value.details["maximum"]


@pytest.mark.parametrize("line", ["n = n // 3 + n", "n = n * n // 3"])
def test_a_dimension_that_doubles_with_each_line_is_refused_before_it_is_long(line: str) -> None:
    with pytest.raises(InvalidGraphError, match="more than 16384 characters"):
        read_builder_text(INPUT + "\n".join([line] * 40))


DEEP = {
    "-": "-" * 20_000 + "1",
    "+": "1" + "+1" * 5000,
    "(": "(" * 5000,
    ".": "x" + ".x" * 5000,
    "[": "x" + "[0" * 5000,
}


@pytest.mark.parametrize("sign", DEEP)
def test_text_nested_too_deeply_for_the_parser_is_a_typed_error(sign: str) -> None:
    with pytest.raises(TensorkilnError):
        read_builder_text(DEEP[sign])


def test_any_text_gives_a_graph_or_a_typed_error() -> None:
    draw = random.Random(1)
    words = [
        *"()[]{},.:=+-*/@<>~'\n",
        "x",
        "b",
        "n",
        "1",
        "0.5",
        "None",
        "relu",
        "sum",
        "axis",
        "shape",
        "split",
        "...",
        "{",
        "9" * 30,
    ]
    sources = [INPUT + text for text in TEXTS.values()]
    ended: set[str] = set()
    for _ in range(3000):
        text = draw.choice(sources)
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(len(text))
            text = text[:at] + draw.choice(words) + text[at + draw.randint(0, 4) :]
        try:
            Graph.model_validate(read_builder_text(text).document)
            ended.add("graph")
        except TensorkilnError as error:
            ended.add(error.code)
    assert (
        {"graph", "graph.invalid", "graph.unsupported"}
        <= ended
        <= {"graph", "graph.invalid", "graph.unsupported", "limit.exceeded"}
    )


def test_a_text_can_call_what_the_builder_has_and_nothing_else() -> None:
    assert set(names.FUNCTIONS) - {"abs", "float"} < set(build.__all__)
    assert set(build.__all__) - set(names.FUNCTIONS) == {"Builder", "Tensor", "while_loop", "pack_array"}
    known = {*names.FUNCTIONS, *names.BUILDER_METHODS, *names.TENSOR_METHODS, *names.TENSOR_FIELDS}
    assert [each for each in known if each.startswith("_")] == []
    assert {"builder", "append", "document", "region", "inside"} & known == set()
    assert reading.MAX_ELEMENTS >= MAX_TEXT_BYTES
