"""What cannot be imported is named: all operations at once, symbols without bounds, damaged and foreign files."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorkiln.errors import CallInputError, InvalidGraphError, RequestError, UnsupportedGraphError
from tensorkiln.frontends.torch import load
from tensorkiln.frontends.torch.lines import user_line
from tensorkiln.frontends.torch.sizes import size

from .exports import program

Record = dict[str, Any]
BFLOAT16 = 13
"""Of torch's numbers for types."""


def changed(
    name: str, change: Callable[[Record], object], path: str = "models/model.json", family: str = "networks"
) -> io.BytesIO:
    """An archive of a case whose JSON is changed."""
    stream = io.BytesIO()
    with zipfile.ZipFile(program(family, name)) as given, zipfile.ZipFile(stream, "w") as kept:
        for entry in given.namelist():
            content = given.read(entry)
            if entry.endswith(path):
                record = json.loads(content)
                change(record)
                content = json.dumps(record).encode()
            kept.writestr(entry, content)
    stream.seek(0)
    return stream


def nodes(record: Record) -> list[Record]:
    return record["graph_module"]["graph"]["nodes"]


def test_all_operations_that_are_not_supported_are_listed_with_the_users_lines() -> None:
    def change(record: Record) -> None:
        nodes(record)[0]["target"] = "torch.ops.aten.special_i0.default"
        nodes(record)[-1]["target"] = "torch.ops.mine.own.default"

    with pytest.raises(UnsupportedGraphError) as caught:
        load(changed("convolutional", change))
    assert caught.value.message.startswith("2 of the operations of model are not supported:")
    first, second = caught.value.details["operations"]
    assert first["operator"] == "aten.special_i0.default"
    assert second["operator"] == "mine.own.default"
    assert "this operator is not supported" in first["reason"]
    assert str(second["name"]) in caught.value.message


def test_dropout_between_recurrent_layers_is_refused() -> None:
    def change(record: Record) -> None:
        given = {each["name"]: each["arg"] for each in nodes(record)[-1]["inputs"]}
        given["dropout"]["as_float"], given["train"]["as_bool"] = 0.5, True
        given["num_layers"]["as_int"] = layers

    layers = 1
    assert load(changed("rnn_many", change, family="recurrent")).outputs
    layers = 2
    with pytest.raises(UnsupportedGraphError, match="dropout between recurrent layers"):
        load(changed("rnn_many", change, family="recurrent"))


def test_exponentials_of_16_bit_floats_are_refused() -> None:
    def change(record: Record) -> None:
        for value in record["graph_module"]["graph"]["tensor_values"].values():
            value["dtype"] = BFLOAT16

    with pytest.raises(UnsupportedGraphError, match="exponentials of bfloat16 are not supported; cast"):
        load(changed("exponentials", change, family="statistics"))


def test_the_users_line_is_the_innermost_that_is_not_torchs() -> None:
    trace = (
        'File "app/model.py", line 12, in forward\n    x = self.layer(x)\n'
        'File "app/layer.py", line 7, in forward\n    return F.linear(x, self.w)\n'
        'File "lib/torch/nn/functional.py", line 9, in linear\n    return torch._C._nn.linear(input)\n'
    )
    assert user_line(trace) == "app/layer.py:7 in forward: return F.linear(x, self.w)"
    assert user_line('File "lib/torch/nn/functional.py", line 9, in linear') == ""
    assert user_line(None) == ""


def unbounded(record: Record) -> None:
    for bound in record["range_constraints"].values():
        bound["max_val"] = None


def test_a_symbol_without_an_upper_bound_needs_one() -> None:
    with pytest.raises(UnsupportedGraphError, match=r"no upper bound of s\d+ \(at least 2; the size of x_0\): give"):
        load(changed("documented", unbounded))
    model = load(changed("documented", unbounded), symbols={"x_0": (2, 9)})
    assert list(model.graph.symbols.values()) == [(2, 9)]
    fixed = load(changed("documented", unbounded), symbols={"x_0": 5})
    assert fixed.graph.types[fixed.inputs["x"]].shape == (5, 6)
    assert not fixed.graph.symbols


def test_bounds_that_torchs_program_does_not_have_are_refused() -> None:
    with pytest.raises(RequestError, match=r"from 2 to 64 in torch's program, which \(1, 64\) is not within"):
        load(program("networks", "documented"), symbols={"x_0": (1, 64)})
    with pytest.raises(RequestError, match=r"no dynamic dimension 'rows'; they are s\d+, x_0"):
        load(program("networks", "documented"), symbols={"rows": (2, 4)})
    with pytest.raises(RequestError, match="other bounds by 'x_0' than by another name"):
        load(program("networks", "documented"), symbols={"s77": (2, 4), "x_0": (2, 8)})


def test_a_result_that_is_not_what_torch_says_is_refused() -> None:
    def change(record: Record) -> None:
        values = record["graph_module"]["graph"]["tensor_values"]
        values[nodes(record)[-1]["outputs"][0]["as_tensor"]["name"]]["dtype"] = 8

    with pytest.raises(UnsupportedGraphError, match=r"the result would be float32.*, torch says float64"):
        load(changed("conv2d", change))


def _another_schema(record: Record) -> None:
    record["schema_version"]["major"] = 9


def _pickled(record: Record) -> None:
    next(iter(record["config"].values()))["use_pickle"] = True


def _outside(record: Record) -> None:
    next(iter(record["config"].values()))["tensor_meta"]["storage_offset"] = {"as_int": 1000}


def _negative(record: Record) -> None:
    next(iter(record["config"].values()))["tensor_meta"]["strides"][0] = {"as_int": -4}


def _complex(record: Record) -> None:
    next(iter(record["config"].values()))["tensor_meta"]["dtype"] = 10


WEIGHTS = "weights_config.json"


@pytest.mark.parametrize(
    ("change", "path", "error", "message"),
    [
        (_another_schema, "models/model.json", UnsupportedGraphError, r"of the schema 9\.20, and 8 is read"),
        (_pickled, WEIGHTS, UnsupportedGraphError, "is pickled, which only torch reads"),
        (_complex, WEIGHTS, UnsupportedGraphError, "is of complex64"),
        (_outside, WEIGHTS, InvalidGraphError, "lies outside of the"),
        (_negative, WEIGHTS, InvalidGraphError, "lies outside of the"),
        (lambda record: record.pop("graph_module"), "models/model.json", InvalidGraphError, "cannot be read as an"),
        (lambda record: record["config"].clear(), WEIGHTS, InvalidGraphError, "has no values of"),
        (lambda record: nodes(record)[0].pop("inputs"), "models/model.json", InvalidGraphError, "cannot be read as an"),
    ],
)
def test_damaged_and_foreign_archives_are_refused(
    change: Callable[[Record], object], path: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        load(changed("conv2d", change, path))


def test_arguments_that_no_torch_would_write_are_refused() -> None:
    def shorter(record: Record) -> None:
        next(entry for entry in nodes(record)[0]["inputs"] if entry["name"] == "stride")["arg"]["as_ints"] = [1, 2, 3]

    def missing(record: Record) -> None:
        nodes(record)[0]["inputs"] = []

    with pytest.raises(InvalidGraphError, match=r"convolution\.default .*3 entries"):
        load(changed("conv2d", shorter))
    with pytest.raises(UnsupportedGraphError, match="the argument input is None, and no tensor"):
        load(changed("conv2d", missing))


def test_files_other_than_archives_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "text.pt2"
    text.write_text("no archive")
    with pytest.raises(InvalidGraphError, match=r"text\.pt2 cannot be read as an exported program"):
        load(text)
    with zipfile.ZipFile(text, "w") as empty:
        empty.writestr("model/version", "3")
    with pytest.raises(InvalidGraphError, match="holds no program"):
        load(text)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.pt2")


@pytest.mark.parametrize("place", range(0, 4000, 97))
def test_an_archive_that_was_cut_or_changed_gives_no_other_error(place: int) -> None:
    content = bytearray(program("networks", "documented").getvalue())
    content[place % len(content)] ^= 0x55
    for damaged in (bytes(content), bytes(content[: len(content) - place - 1])):
        try:
            load(io.BytesIO(damaged))
        except (InvalidGraphError, UnsupportedGraphError):
            continue


def test_sizes_are_read_from_their_text() -> None:
    symbol = "Symbol('s0', positive=True, integer=True)"
    assert str(size(f"Add(Mul(Integer(2), {symbol}), Integer(-1))")) == "2*s0 + -1"
    assert size(f"FloorDiv(Mul(Integer(6), {symbol}), Integer(3))") == size(f"Mul({symbol}, Integer(2))")
    assert str(size(f"Max(Integer(1), {symbol})")).startswith("max(")
    assert size(f"Pow({symbol}, Integer(2))") == size(f"Mul({symbol}, {symbol})")
    half = f"Mul(Float('1.5', precision=53), ToFloat({symbol}))"
    assert size(f"TruncToInt({half})") == size(f"FloorDiv(Mul(Integer(3), {symbol}), Integer(2))")
    for text in (
        half,
        f"TruncToInt(Mul(Float('1.7', precision=53), ToFloat({symbol})))",
        f"TruncToInt(Mul(Float('-0.5', precision=53), ToFloat({symbol})))",
        f"TruncToInt(Mul(Float('nan', precision=53), ToFloat({symbol})))",
        f"TruncToInt(Mul(Float('1e999', precision=53), ToFloat({symbol})))",
        "__import__('os')",
        "Rational(1, 2)",
        f"IntTrueDiv({symbol}, Integer(2))",
        "Add(",
        "(" * 999,
        f"Pow({symbol}, Integer(99))",
    ):
        with pytest.raises(UnsupportedGraphError):
            size(text)


def test_nothing_of_torch_is_imported() -> None:
    import subprocess
    import sys

    code = (
        "import sys, io\nfrom tests.frontends.torch.exports import loaded\n"
        "loaded('networks', 'perceptron')\nassert 'torch' not in sys.modules\nassert 'onnx' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_symbol_is_solved_from_a_size_that_is_a_multiple() -> None:
    from tensorkiln.expr import mul, symbol
    from tensorkiln.frontends.torch.calling import Calling

    dim = mul(2, symbol("s0"))
    calling = Calling(("x",), {"x": (dim + 1,)}, {}, {}, (), {}, {})
    assert calling.symbols({"x": np.zeros(9)}) == {"s0": 4}
    with pytest.raises(CallInputError, match="axis 0 of x has the size 8, and must be"):
        calling.symbols({"x": np.zeros(8)})
