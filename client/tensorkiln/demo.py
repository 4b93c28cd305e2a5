"""End-to-end demo: `python -m tensorkiln.demo` compiles SqueezeNet, runs it on this machine and checks the result.

The network and its expected output ship with the `onnx` package; all weights are equal, so all classes are equally
likely. `--random-weights` is the harder check: it draws weights at random, and compares the logits, relative to the
largest one, with the NumPy reference evaluator.
Exit code 0 means that the outputs agree to a relative 1e-3 and an absolute 1e-4, 1 that they do not, 2 that the
network could not be compiled or run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .errors import TensorkilnError
from .frontends.model import Model
from .frontends.onnx import load
from .program import Program
from .reference import evaluate
from .runtime.item_profile import ItemProfile
from .sdk import Client

RTOL, ATOL = 1e-3, 1e-4
NETWORKS = (
    *("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet"),
    *("vgg19", "zfnet512"),
)

REFERENCE_FITS = ("bvlc_alexnet", "shufflenet", "squeezenet")
"""Networks that fit the reference evaluator, which keeps every value, even products in convolutions: 1 to 3 GiB."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The error of outputs against the expected ones."""

    largest_error: float
    is_close: bool


def compare(actual: Array, expected: Array) -> Comparison:
    """Elementwise, to `RTOL` and `ATOL`; a NaN is never close to a number."""
    if actual.shape != expected.shape or actual.size == 0:
        return Comparison(float("inf"), False)
    with np.errstate(invalid="ignore"):
        largest = float(np.max(np.abs(actual.astype(np.float64) - expected.astype(np.float64))))
    return Comparison(largest, bool(np.allclose(actual, expected, RTOL, ATOL)))


def network(name: str) -> Model:
    """One of the light networks of the onnx package."""
    return load(_data(f"light_{name}.onnx"))


def random_network(name: str, seed: int = 0) -> Model:
    """The network up to its logits, with random weights. A softmax of large logits would hide every error."""
    import onnx

    proto = onnx.load(_data(f"light_{name}.onnx"))
    last = proto.graph.node[-1]
    if last.op_type == "Softmax":
        proto.graph.output[0].name = last.input[0]
        del proto.graph.node[-1]
    return with_random_weights(load(proto), seed)


def shipped_output(name: str) -> Array:
    """The expected output of the network for `example_image`."""
    from onnx import TensorProto, numpy_helper

    tensor = TensorProto()
    tensor.ParseFromString(_data(f"light_{name}_output_0.pb").read_bytes())
    return numpy_helper.to_array(tensor)


def _data(file: str) -> Path:
    import onnx

    return Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / file


def example_image(model: Model) -> Array:
    """The input of the expected outputs: a ramp from 0 to 1."""
    (var,) = model.inputs.values()
    shape = [dim for dim in model.graph.types[var].shape if isinstance(dim, int)]
    count = int(np.prod(shape))
    return (np.arange(count).reshape(shape) / count).astype(np.float32)


def with_random_weights(model: Model, seed: int = 0) -> Model:
    """The same graph with other parameters, scaled so that no layer's outputs grow or vanish (He 2015)."""
    rng = np.random.default_rng(seed)
    drawn = {var: _draw(rng, array) for var, array in model.parameters.items()}
    return replace(model, parameters=drawn)


def _draw(rng: np.random.Generator, like: Array) -> Array:
    inputs_of_each_output = max(int(np.prod(like.shape[1:])), 1)
    return (rng.standard_normal(like.shape) * np.sqrt(2 / inputs_of_each_output)).astype(like.dtype)


def kernel_rows(items: Sequence[ItemProfile]) -> list[tuple[str, str, str, str]]:
    """Name, grid, work-group and time of each item, in the order of execution."""
    return [
        (
            item.name,
            _sizes(item.launch.global_size) if item.launch else "-",
            _sizes(item.launch.local_size) if item.launch and item.launch.local_size else "-",
            f"{item.ns / 1e6:.3f} ms",
        )
        for item in items
    ]


def _sizes(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes))


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, with rich if it is installed, else in plain columns."""
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        for row in (header, *rows):
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    table = Table(*header)
    for row in rows:
        table.add_row(*row)
    Console(soft_wrap=not sys.stdout.isatty()).print(table)


def run(name: str, url: str | None, is_random: bool, repeats: int) -> Comparison:
    """Import, compile, run and check one network, and print times and memory."""
    model = random_network(name) if is_random else network(name)
    image = example_image(model)
    print(f"{name}: {len(model.graph.nodes)} nodes, {len(model.parameters)} parameters")
    with Client(url) as client:
        began = time.perf_counter()
        program = client.compile(model.graph).bind(model.parameters)
        compile_s = time.perf_counter() - began
    (actual,), run_s = _fastest(program, image, repeats)
    profile = program.profile(image)
    show_table(("kernel", "grid", "work-group", "time"), kernel_rows(profile))
    if is_random:
        (expected,) = evaluate(model.graph, *(model.parameters.get(var, image) for var in model.graph.input_vars))
        largest = np.abs(expected).max()
        result = compare(actual / largest, expected / largest)
    else:
        result = compare(actual, shipped_output(name))
    print(f"compiled in {compile_s:.2f} s, {len(profile)} items, {program.measured_peak_bytes / 2**20:.1f} MiB at most")
    print(f"ran in {run_s * 1e3:.2f} ms, the fastest of {repeats}")
    print(f"largest error {result.largest_error:.3g}: {'close' if result.is_close else 'NOT CLOSE'}")
    return result


def _fastest(program: Program, image: Array, repeats: int) -> tuple[tuple[Array, ...], float]:
    outputs: tuple[Array, ...] = ()
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        outputs = program(image)
        best = min(best, time.perf_counter() - began)
    return outputs, best


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tensorkiln.demo", description="Compile, run and check a network.")
    parser.add_argument("--network", choices=NETWORKS, default="squeezenet")
    parser.add_argument("--url", help="the service to use; without it, one is started in a child process")
    parser.add_argument("--random-weights", action="store_true", help="check against the NumPy reference (slow)")
    parser.add_argument("--repeats", type=int, default=5, help="runs to take the fastest of")
    options = parser.parse_args(argv)
    if options.repeats < 1:
        parser.error("--repeats is at least 1")
    if options.random_weights and options.network not in REFERENCE_FITS:
        parser.error(f"--random-weights needs too much memory for {options.network}; it is for {REFERENCE_FITS}")
    try:
        result = run(options.network, options.url, options.random_weights, options.repeats)
    except TensorkilnError as error:
        print(f"error[{error.code}]: {error}", file=sys.stderr)
        return 2
    return 0 if result.is_close else 1


if __name__ == "__main__":
    sys.exit(main())
