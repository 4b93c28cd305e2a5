"""`kiln.toml` beside models: what it says of each, what wins over it, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tensorkiln import Graph
from tensorkiln.cli.kiln_toml import (
    FILE,
    MAX_BYTES,
    ModelSettings,
    nearest,
    read_kiln_toml,
    require_matches,
    settings_of,
)
from tensorkiln.errors import RequestError
from tests.sdk.conftest import Kiln, complaint, succeeded
from tests.snippets import ROOT, blocks

WHOLE = """
targets = ["x86-64-v2"]
dims = { batch = [1, 8], length = 16 }
options = { fast_math = true }

[models."encoders/*"]
dims = { batch = [1, 64] }
targets = ["cpu:x86-64-v3", "sm_90"]

[models."*.onnx"]
options = { fusion = false }
constants = { shape = [2, -1], scale = 0.5 }
"""


def written(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(text)
    return folder / FILE


def test_settings_of_a_glob_override_general_ones(tmp_path: Path) -> None:
    written(tmp_path, WHOLE)
    plain = settings_of(tmp_path / "graph.json", tmp_path)
    assert (plain.dims, plain.targets) == ({"batch": (1, 8), "length": 16}, ("cpu:x86-64-v2",))
    assert (plain.options.fast_math, plain.options.fusion, plain.constants) == (True, True, {})
    encoder = settings_of(tmp_path / "encoders" / "large" / "bert.onnx", tmp_path)
    assert encoder.dims == {"batch": (1, 64), "length": 16}
    assert encoder.targets == ("cpu:x86-64-v3", "cuda:sm_90")
    assert (encoder.options.fast_math, encoder.options.fusion) == (True, False)
    assert encoder.constants == {"shape": [2, -1], "scale": 0.5}


def test_the_command_line_overrides_the_file(tmp_path: Path) -> None:
    written(tmp_path, WHOLE)
    own = settings_of(tmp_path / "a.onnx", tmp_path)
    given = own.with_flags({"batch": 3}, ["cpu:aarch64"], {"fast_math": False, "tuned": None})
    assert (given.dims, given.targets) == ({"batch": 3, "length": 16}, ("cpu:aarch64",))
    assert (given.options.fast_math, given.options.fusion, given.options.tuned) == (False, False, "off")
    assert own.with_flags({}, None, {}) == own
    assert ModelSettings().with_flags({}, None, {}) == ModelSettings()


def test_the_nearest_file_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    above = written(tmp_path, "")
    inner = written(tmp_path / "folder" / "inner", "")
    model = tmp_path / "folder" / "inner" / "deep" / "a.onnx"
    assert nearest(model, tmp_path) == inner
    assert nearest(tmp_path / "folder" / "a.onnx", tmp_path) == above
    assert nearest(tmp_path / "folder" / "a.onnx", tmp_path / "folder") is None
    assert nearest(tmp_path / "a.onnx", tmp_path / "folder") == above
    monkeypatch.chdir(tmp_path / "folder")
    assert nearest(Path("a.onnx")) is None
    assert nearest(Path("inner/deep/a.onnx")) == inner
    assert nearest(tmp_path / "a.onnx") == above


def test_a_model_that_is_reached_by_two_dots_is_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = written(tmp_path / "here", "options = { fast_math = true }\n[models.'inner/*']\ndims = { n = 4 }")
    (tmp_path / "here" / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    outside = Path("../other/m.onnx")
    assert nearest(outside) is None
    assert settings_of(outside) == ModelSettings()
    assert nearest(Path("inner/../../other/m.onnx"), Path("inner/..")) is None
    assert nearest(Path("inner/../m.onnx"), Path("../here")) == inner
    assert settings_of(Path("inner/../m.onnx")).dims == {}
    assert settings_of(Path("../here/inner/m.onnx")).dims == {"n": 4}
    require_matches([Path("../here/inner/m.onnx"), outside], Path("inner/.."))
    with pytest.raises(RequestError, match=r"no model matches \[models.'inner/\*'\]"):
        require_matches([Path("inner/../m.onnx")], Path.cwd())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("target = ['x86-64-v3']", "target is not a setting; do you mean targets?"),
        ("[models.'*'.option]", "models.'*'.option is not a setting; do you mean options?"),
        ("options = { fastmath = true }", "options.fastmath is not a setting; do you mean fast_math?"),
        ("colour = 1", "colour is not a setting; known are dims, targets, options, constants, models"),
        ("options = { fast_math = 'perhaps' }", "options.fast_math is 'perhaps': "),
        ("dims = { n = [4, 1] }", "dims.n is '[4, 1]': write [MIN, MAX] with 0 <= MIN <= MAX"),
        ("dims = { n = true }", "dims.n is 'True': "),
        ("dims = { n = [1, 2, 3] }", "dims.n is "),
        ("targets = 'x86-64-v3'", "targets is 'x86-64-v3': "),
        ("targets = ['pentium']", "pentium"),
        ("targets = []", "targets is empty"),
        ("constants = { n = 'four' }", "constants.n is 'four': "),
        ("targets = [", "is not TOML"),
    ],
)
def test_unknown_settings_are_refused_by_key(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(RequestError, match=re.escape(message)) as caught:
        read_kiln_toml(path)
    assert str(path) in caught.value.message


def test_a_file_that_is_no_text_or_too_large_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "")
    path.write_bytes(b"\xff")
    with pytest.raises(RequestError, match="is not TOML"):
        read_kiln_toml(path)
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(RequestError, match=f"at most {MAX_BYTES} are read"):
        read_kiln_toml(path)


def test_a_glob_that_no_model_matches_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "[models.'encoder/*.onnx']")
    models = [tmp_path / "encoders" / "a.onnx", tmp_path / "b.json"]
    with pytest.raises(RequestError, match=re.escape(f"{path}: no model matches [models.'encoder/*.onnx']")):
        require_matches(models, tmp_path)
    written(tmp_path, "[models.'encoders/*.onnx']")
    require_matches(models, tmp_path)


def expanded() -> bytes:
    """`expand(x, shape) * scale`, x of n by 1; its shape is an input."""
    onnx = pytest.importorskip("onnx")
    proto, make = onnx.TensorProto, onnx.helper
    graph = make.make_graph(
        [make.make_node("Expand", ["x", "shape"], ["y"]), make.make_node("Mul", ["y", "scale"], ["z"])],
        "expanded",
        [
            make.make_tensor_value_info("x", proto.FLOAT, ["n", 1]),
            make.make_tensor_value_info("shape", proto.INT64, [2]),
            make.make_tensor_value_info("scale", proto.FLOAT, []),
        ],
        [make.make_tensor_value_info("z", proto.FLOAT, None)],
    )
    return make.make_model(graph).SerializeToString()


SETTINGS = """
targets = ["cpu:x86-64-v2"]
dims = { n = [1, 8], nobody = 4 }

[models."*.onnx"]
constants = { shape = [1, 3], scale = 0.5 }
options = { fast_math = true }
"""


def test_a_folder_is_compiled_as_its_file_says(kiln: Kiln, tmp_path: Path, layer: Graph) -> None:
    folder = tmp_path / "models"
    written(folder, SETTINGS)
    (folder / "expanded.onnx").write_bytes(expanded())
    (folder / "layer.json").write_text(layer.to_json())
    done = kiln("compile-all", "models", "--json", "report.json", "--lock", "kiln.lock")
    assert done.returncode == 0, done.stderr + done.stdout
    results = {each["graph"]: each for each in json.loads((tmp_path / "report.json").read_text())["results"]}
    assert {(name, each["target"], each["status"]) for name, each in results.items()} == {
        ("expanded", "cpu:x86-64-v2", "ok"),
        ("layer", "cpu:x86-64-v2", "ok"),
    }
    checked = kiln("compile-all", "models", "--lock", "kiln.lock", "--check")
    assert checked.returncode == 0, checked.stdout
    wins = kiln("compile-all", "models", "-t", "x86-64-v3", "--no-fast-math", "--dim", "n=2", "--json", "other.json")
    assert wins.returncode == 0, wins.stdout
    others = {each["graph"]: each for each in json.loads((tmp_path / "other.json").read_text())["results"]}
    assert {each["target"] for each in others.values()} == {"cpu:x86-64-v3"}
    written(folder, SETTINGS.replace("*.onnx", "*.onx"))
    assert "no model matches [models.'*.onx']" in complaint(kiln("compile-all", "models"), 2)
    written(folder, "")
    refused = complaint(kiln("compile-all", "models"), 2)
    assert "expanded.onnx has no target: name some by --targets, or in kiln.toml" in refused


def test_commands_for_one_model_take_what_its_file_says(kiln: Kiln, tmp_path: Path) -> None:
    written(tmp_path / "models", SETTINGS.replace('targets = ["cpu:x86-64-v2"]', ""))
    (tmp_path / "models" / "expanded.onnx").write_bytes(expanded())
    assert "1 to 8" in succeeded(kiln("validate", "models/expanded.onnx"))
    x = np.arange(5, dtype=np.float32)[:, None]
    np.save(tmp_path / "x.npy", x)
    succeeded(kiln("run", "models/expanded.onnx", "-i", "x.npy", "-o", "y.npy"))
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.broadcast_to(x, (5, 3)) * np.float32(0.5))
    contradicted = complaint(kiln("run", "models/expanded.onnx", "-i", "x.npy", "--symbol", "n=4"), 6)
    assert "--symbol n=4: the inputs make it 5" in contradicted
    succeeded(kiln("run", "models/expanded.onnx", "--dim", "n=5", "-i", "x.npy"))
    stored = succeeded(kiln("explain", "models/expanded.onnx", "--out", "why.json"))
    assert re.search(r"cpu:native .* yes .*same request", stored)
    action = json.loads((tmp_path / "why.json").read_text())["actions"][0]
    assert action["components"]["options"]["fast_math"] is True
    missing = kiln("explain", "models/expanded.onnx", "--no-fast-math", "-t", "cpu:native")
    assert re.search(r"cpu:native .* no .*differs in options.fast_math", missing.stdout)
    written(tmp_path / "models", 'targets = ["x86-64-v2", "x86-64-v3"]\nconstants = { shape = [1, 3], scale = 1 }')
    both = kiln("compile", "models/expanded.onnx", "--dim", "n=1:8")
    assert both.returncode == 0, both.stderr
    assert {"cpu:x86-64-v2", "cpu:x86-64-v3"} <= set(both.stdout.split())
    bundle = complaint(kiln("compile", "models/expanded.onnx", "--dim", "n=1:8", "--bundle", "one.kiln"), 2)
    assert "kiln.toml names 2 targets: give --target" in bundle


def test_constants_are_for_inputs_of_onnx_models_and_fit_them(kiln: Kiln, tmp_path: Path, layer: Graph) -> None:
    written(tmp_path, "constants = { shape = [1, 3.5] }\ndims = { n = 4 }")
    (tmp_path / "expanded.onnx").write_bytes(expanded())
    refused = complaint(kiln("validate", "expanded.onnx"), 6)
    assert "the input 'shape' is of int64; the array that fixes it is of float64" in refused
    (tmp_path / "layer.json").write_text(layer.to_json())
    refused = complaint(kiln("validate", "layer.json"), 2)
    said = " ".join(refused.split())
    assert f"constants in {tmp_path / FILE} apply to ONNX models only" in said
    assert 'move them to a table such as [models."*.onnx"]' in said
    written(tmp_path, "[models.'*.onnx']\nconstants = { shape = [1, 3], scale = 1 }")
    assert kiln("validate", "layer.json").returncode == 0


def test_the_file_of_the_manual_is_one(tmp_path: Path) -> None:
    (block,) = blocks(ROOT / "docs" / "cli.md", "toml")
    path = written(tmp_path, block.text)
    encoder = settings_of(tmp_path / "encoders" / "bert.onnx", tmp_path)
    assert (encoder.dims, encoder.constants) == ({"batch": (1, 8), "length": 128}, {"shape": [2, -1]})
    assert read_kiln_toml(path).targets == ("cpu:x86-64-v3", "cuda:sm_90")
