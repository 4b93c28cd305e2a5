"""`kiln` on models of every format: each file is compiled and run as its importer says, or refused by its name."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from tensorkiln import Client, Graph, reference
from tensorkiln.cli.dims import parse_dims
from tensorkiln.cli.model import SUFFIXES, Given, read_model
from tensorkiln.errors import RequestError
from tensorkiln.frontends.model import Model
from tensorkiln.stablehlo import StableHlo
from tests.frontends.jax.functions import FILES
from tests.frontends.jax.functions import Function as JaxFunction
from tests.frontends.torch import exports
from tests.sdk.conftest import Kiln, complaint, one_line, refusal, succeeded

ROOT = Path(__file__).parents[2]
LAYER = ROOT / "tests" / "stablehlo" / "exported" / "layer.mlirbc"
DOUBLED = (
    "func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {"
    " %0 = stablehlo.add %x, %x : tensor<?x4xf32> return %0 : tensor<?x4xf32> }"
)
NAME = "model"
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """A file, what it gives for some arrays, the names `--dim` has for its dynamic dimensions, and those of symbols."""

    content: bytes
    inputs: Sequence[Array]
    outputs: Sequence[Array]
    dims: Sequence[str] = ()
    symbols: Sequence[str] = ()
    sizes: Sequence[int] = ()
    least: int = 1
    name: str = ""

    def bounds(self) -> list[str]:
        return [word for name in self.dims for word in ("--dim", f"{name}={self.least}:16")]

    def fixed(self) -> list[str]:
        pairs = zip(self.dims, self.sizes, strict=True)
        return [word for name, size in pairs for word in ("--dim", f"{name}={size}")]

    def values(self) -> list[str]:
        pairs = zip(self.symbols, self.sizes, strict=True)
        return [word for name, size in pairs for word in ("--symbol", f"{name}={size}")]


def onnx_layer() -> Case:
    onnx = pytest.importorskip("onnx")
    weights = np.random.default_rng(1).standard_normal((8, 3), np.float32)
    floats = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])],
        "layer",
        [onnx.helper.make_tensor_value_info("x", floats, ["batch size", 8])],
        [onnx.helper.make_tensor_value_info("y", floats, ["batch size", 3])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    x = np.random.default_rng(2).standard_normal((5, 8), np.float32)
    content = onnx.helper.make_model(graph).SerializeToString()
    return Case(content, [x], [x @ weights], ["batch size"], ["batch_size"], [5])


def module_text() -> Case:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    return Case(DOUBLED.encode(), [x], [2 * x], ["0.0"], ["d0_0"], [3])


def artifact() -> Case:
    generator = np.random.default_rng(3)
    arrays = [generator.standard_normal(shape, np.float32) for shape in ((3, 4), (4, 6), (6,))]
    rows = arrays[0] @ arrays[1] + arrays[2]
    gelu = rows * (1 + np.tanh(np.sqrt(2 / np.pi) * (rows + 0.044715 * rows**3))) / 2
    outputs = [np.exp(gelu) / np.exp(gelu).sum(1, keepdims=True)]
    return Case(LAYER.read_bytes(), arrays, outputs, ["0.0"], ["d0_0"], [3])


def jax_function() -> Case:
    function = JaxFunction("networks", "n_matmul")
    *_, (inputs, outputs) = function.samples()
    return Case(function.path.read_bytes(), inputs, outputs, ["n", "m"], ["n", "m"], [4, 1])


def torch_program() -> Case:
    call = exports.calls("networks", "documented")[1]
    content = exports.program("networks", "documented").read()
    return Case(content, call.arguments, call.results, ["x_0"], ["s77"], [9], least=2)


CASES: dict[str, Callable[[], Case]] = {
    ".onnx": onnx_layer,
    ".mlir": module_text,
    ".mlirbc": artifact,
    ".stablehlo": artifact,
    ".jax": jax_function,
    ".jaxexport": jax_function,
    ".pt2": torch_program,
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    made = replace(CASES[request.param](), name=f"{NAME}{request.param}")
    (tmp_path / made.name).write_bytes(made.content)
    return made


def saved(path: Path) -> tuple[Array, Array]:
    """A saved model of x @ w, with w as its parameter: what it takes, and gives."""
    pytest.importorskip("onnx")
    from tensorkiln.frontends import onnx as importer

    case = onnx_layer()
    importer.load(case.content, symbols={"batch size": (1, 16)}).save(path)
    assert Model.load(path).parameters
    return case.inputs[0], case.outputs[0]


def run(kiln: Kiln, folder: Path, name: str, inputs: Sequence[Array], *options: str) -> list[Array]:
    np.savez(folder / "in.npz", *inputs)
    succeeded(kiln("run", name, "--input", "in.npz", "--out", "out.npz", *options))
    with np.load(folder / "out.npz") as outputs:
        return [outputs[key] for key in outputs.files]


def assert_near(found: Sequence[Array], wanted: Sequence[Array]) -> None:
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-5)


def test_every_suffix_has_a_case() -> None:
    assert {*SUFFIXES} == {*CASES, ".json", ".kilnmodel"}


def test_a_model_runs_within_bounds_and_at_a_fixed_size(kiln: Kiln, tmp_path: Path, case: Case) -> None:
    found = run(kiln, tmp_path, case.name, case.inputs, *case.bounds(), *case.values())
    assert_near(found, case.outputs)
    assert_near(run(kiln, tmp_path, case.name, case.inputs, *case.fixed()), case.outputs)


def test_a_model_is_validated_with_its_symbols(kiln: Kiln, tmp_path: Path, case: Case) -> None:
    (tmp_path / case.name).rename(tmp_path / case.name.upper())
    shown = succeeded(kiln("validate", case.name.upper(), *case.bounds()))
    for name in case.symbols:
        (line,) = [line for line in shown.splitlines() if "symbol" in line and f" {name} " in line]
        assert f"{case.least} to 16" in line


def test_a_dimension_that_is_not_there_is_wrong_usage_that_says_which_are(kiln: Kiln, case: Case) -> None:
    refused = one_line(kiln("validate", case.name, *case.bounds(), "--dim", "elsewhere=1:64"), 2)
    assert refused.startswith("error[request.invalid]")
    for text in (f"{case.name}: ", "'elsewhere'", *case.dims):
        assert text in refused


@pytest.mark.parametrize("case", [suffix for suffix in CASES if suffix != ".pt2"], indirect=True)
def test_a_dimension_without_bounds_is_refused_with_the_option_that_gives_some(kiln: Kiln, case: Case) -> None:
    refused = refusal(kiln("compile", case.name), 1)
    first = sorted(case.dims)[0]
    written = f"'{first}=1:64'" if " " in first else f"{first}=1:64"
    assert f"{case.name}: " in refused
    assert refused.endswith(f"; here that is --dim {written}.\n")


def test_bounds_that_torch_does_not_have_are_wrong_usage(kiln: Kiln, tmp_path: Path) -> None:
    (tmp_path / "model.pt2").write_bytes(torch_program().content)
    assert "from 2 to 64 in torch's program" in complaint(kiln("validate", "model.pt2", "--dim", "x_0=1:64"), 2)


@pytest.mark.parametrize("suffix", [*CASES, ".kilnmodel"])
@pytest.mark.parametrize("content", [b"", b"\x00\xff no model", b"PK\x03\x04", b"ML\xefR\x0dnone"])
def test_noise_is_refused_by_its_file_name(kiln: Kiln, tmp_path: Path, suffix: str, content: bytes) -> None:
    (tmp_path / f"noise{suffix}").write_bytes(content)
    refused = kiln("validate", f"noise{suffix}")
    assert (refused.returncode, refused.stdout) == (2 if suffix == ".kilnmodel" else 1, "")
    assert refused.stderr.startswith("error[")
    assert f"noise{suffix}" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_a_saved_model_runs_with_its_parameters_and_keeps_its_bounds(kiln: Kiln, tmp_path: Path) -> None:
    x, y = saved(tmp_path / "layer.kilnmodel")
    assert_near(run(kiln, tmp_path, "layer.kilnmodel", [x], "--symbol", "batch_size=5"), [y])
    refused = refusal(kiln("compile", "layer.kilnmodel", "--dim", "batch_size=1:8"), 2)
    assert "the bounds of its symbols itself (batch_size from 1 to 16)" in refused


def test_a_graph_as_json_has_the_bounds_of_its_symbols(kiln: Kiln, graph_file: Path) -> None:
    refused = refusal(kiln("compile", graph_file.name, "--dim", "n=1:8"), 2)
    assert "layer.json: --dim n: the graph states the bounds of its symbols itself (n from 1 to 64)" in refused


@pytest.mark.parametrize("written", ["n", "n=", "=3", "n=1:", "n=:4", "n=a:b", "n=4:1", "n=-1:4", "n=1:2:3", "n=1.5"])
def test_a_bound_that_is_written_otherwise_is_refused(written: str) -> None:
    with pytest.raises(RequestError, match="--dim "):
        parse_dims([written])


def test_bounds_are_read_by_name() -> None:
    assert parse_dims(["n=1:64", "a=b=8", "batch size=0:3"]) == {"n": (1, 64), "a=b": 8, "batch size": (0, 3)}
    with pytest.raises(RequestError, match="n has bounds already"):
        parse_dims(["n=1:64", "n=8"])


@pytest.mark.parametrize(
    ("suffix", "command"),
    [(".onnx", "tensorkiln[onnx]"), (".jax", "tensorkiln[jax]"), (".jaxexport", "tensorkiln[jax]")],
)
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, suffix: str, command: str) -> None:
    def no_client() -> NoReturn:
        raise AssertionError("nothing is asked of a service")

    monkeypatch.setattr("tensorkiln.cli.model.find_spec", lambda name: None)
    with pytest.raises(RequestError) as caught:
        read_model(Path(f"model{suffix}"), Given(), no_client)
    assert f"model{suffix}" in caught.value.message
    assert f"`pip install '{command}'`" in caught.value.message


def test_only_formats_translated_by_a_service_need_one(kiln: Kiln, tmp_path: Path) -> None:
    (tmp_path / "model.mlir").write_text(DOUBLED)
    (tmp_path / "model.pt2").write_bytes(torch_program().content)
    (tmp_path / "model.jax").write_bytes((FILES / "shapes" / "trees.jax").read_bytes())
    unreachable = "error[infra.unavailable]: The service at http://127.0.0.1:1 cannot be reached"
    assert kiln("validate", "model.pt2", url="").returncode == 0
    assert not (tmp_path / "home" / "store").exists()
    for name, options in (("model.mlir", ("--dim", "0.0=1:4")), ("model.jax", ())):
        refused = one_line(kiln("validate", name, *options, url="http://127.0.0.1:1"), 3)
        assert refused.startswith(unreachable)


def test_a_folder_of_all_formats_is_compiled_as_a_whole(kiln: Kiln, tmp_path: Path, layer: Graph, served: str) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "graph.json").write_text(layer.to_json())
    saved(folder / "saved.kilnmodel")
    bounds = {"nobody=1:4"}
    for suffix, make in CASES.items():
        (folder / f"{suffix[1:]}{suffix}").write_bytes(make().content)
        bounds |= {*make().bounds()} - {"--dim"}
    given = [word for each in sorted(bounds) for word in ("--dim", each)]
    done = kiln("compile-all", "models", "-t", "cpu:x86-64-v2", "--json", "report.json", *given)
    assert done.returncode == 0, done.stderr + done.stdout
    results = json.loads((tmp_path / "report.json").read_text())["results"]
    assert {each["graph"]: each["status"] for each in results} == dict.fromkeys(
        ["graph", "saved", *(suffix[1:] for suffix in CASES)], "ok"
    )
    digests = {each["graph"]: each["digest"] for each in results}
    assert digests["jax"] == digests["jaxexport"]
    assert digests["mlirbc"] == digests["stablehlo"]
    with Client(served, cache_dir=tmp_path / "client") as client:
        graph = client.translate(StableHlo(DOUBLED, {"0.0": (1, 16)}))
        assert client.compile_for(graph, ["cpu:x86-64-v2"])[0].digest == digests["mlir"]
    (x,) = module_text().inputs
    np.testing.assert_array_equal(reference.evaluate(graph, x, d0_0=3)[0], 2 * x)


def test_a_model_is_tuned_and_a_bundle_has_its_bounds(kiln: Kiln, tmp_path: Path) -> None:
    (tmp_path / "model.mlir").write_text(DOUBLED)
    succeeded(kiln("tune", "model.mlir", "--dim", "0.0=3"))
    assert kiln("compile", "model.mlir", "--dim", "0.0=1:4", "--bundle", "model.kiln").returncode == 0
    assert "--dim is for compiling" in complaint(kiln("run", "model.kiln", "--random", "0", "--dim", "0.0=1:4"), 2)
