"""The demonstration: its comparison, its inputs, its table, and the whole of it."""

from __future__ import annotations

import builtins
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tensorkiln import demo
from tensorkiln.reference import evaluate


@pytest.fixture(autouse=True)
def own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An embedded service keeps its store here and not in the home directory."""
    monkeypatch.setenv("KILN_HOME", str(tmp_path))


def test_a_comparison_is_close_up_to_its_tolerances():
    expected = np.array([1.0, 0.0], np.float32)
    assert demo.compare(expected, expected) == demo.Comparison(0.0, True)
    assert demo.compare(expected + np.array([1e-3, 0.5e-4], np.float32), expected).is_close
    far = demo.compare(expected + np.float32(0.25), expected)
    assert far == demo.Comparison(0.25, False)
    assert not demo.compare(np.array([1.0, np.nan], np.float32), expected).is_close
    assert not demo.compare(expected[:1], expected).is_close


def test_the_image_is_the_ramp_that_the_expected_outputs_were_computed_from():
    image = demo.example_image(demo.network("squeezenet"))
    assert image.shape == (1, 3, 224, 224)
    assert image.dtype == np.float32
    assert image[0, 0, 0, 0] == 0
    assert image.reshape(-1)[-1] == np.float32((image.size - 1) / image.size)


def test_the_expected_output_is_a_distribution_over_a_thousand_classes():
    expected = demo.shipped_output("squeezenet")
    assert expected.shape == (1, 1000, 1, 1)
    np.testing.assert_allclose(expected.sum(), 1, rtol=1e-5)


def test_random_weights_differ_from_one_another_and_are_the_same_every_time():
    model = demo.network("squeezenet")
    first, second = demo.with_random_weights(model), demo.with_random_weights(model)
    assert first.graph is model.graph
    for var, array in model.parameters.items():
        np.testing.assert_array_equal(first.parameters[var], second.parameters[var])
        assert first.parameters[var].shape == array.shape
        assert first.parameters[var].dtype == array.dtype
        assert len(np.unique(first.parameters[var])) > 1


@pytest.mark.parametrize("name", demo.REFERENCE_FITS)
def test_a_network_with_random_weights_ends_in_its_logits(name: str):
    model, whole = demo.random_network(name), demo.network(name)
    assert len(model.graph.nodes) < len(whole.graph.nodes)
    assert "exp2" not in [getattr(node, "op", "") for node in model.graph.nodes]


def test_the_logits_of_random_weights_can_tell_a_right_result_from_a_wrong_one():
    model = demo.random_network("shufflenet")
    image = demo.example_image(model)
    (logits,) = evaluate(model.graph, *(model.parameters.get(var, image) for var in model.graph.input_vars))
    relative = logits / np.abs(logits).max()
    assert np.isfinite(logits).all()
    assert relative.std() > 0.1
    assert not demo.compare(np.roll(relative, 1), relative).is_close


def test_a_table_is_printed_with_rich_and_without(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    rows = [("matmul", "8x1x1", "1.5 ms"), ("sum", "1x1x1", "0.1 ms")]
    demo.show_table(("kernel", "grid", "time"), rows)
    assert "matmul" in capsys.readouterr().out
    original = builtins.__import__

    def without_rich(name: str, *args: Any, **kwargs: Any) -> ModuleType:
        if name.startswith("rich"):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_rich)
    demo.show_table(("kernel", "grid", "time"), rows)
    assert capsys.readouterr().out.splitlines() == [
        "kernel  grid   time",
        "matmul  8x1x1  1.5 ms",
        "sum     1x1x1  0.1 ms",
    ]


def test_bad_arguments_are_refused(capsys: pytest.CaptureFixture[str]):
    for arguments in (["--network", "lenet"], ["--network", "vgg19", "--random-weights"], ["--repeats", "0"]):
        with pytest.raises(SystemExit) as ended:
            demo.main(arguments)
        assert ended.value.code == 2
    assert "--repeats is at least 1" in capsys.readouterr().err


def test_an_unreachable_service_ends_with_exit_code_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("KILN_TIMEOUT_S", "2")
    assert demo.main(["--url", "http://127.0.0.1:9"]) == 2
    assert "error[infra.unavailable]" in capsys.readouterr().err


def test_squeezenet_is_compiled_run_and_close(capsys: pytest.CaptureFixture[str]):
    assert demo.main(["--repeats", "2"]) == 0
    printed = capsys.readouterr().out
    assert "391 nodes, 52 parameters" in printed
    assert "largest error" in printed
    assert "close" in printed
