"""Write `tests/models/files`: each model by both exporters, static and dynamic, with what torch gives for it.

By hand, in an environment of its own, since torch is no dependency of the project. From the root of a checkout:

    python -m venv torch
    torch/bin/pip install torch==2.13.0 numpy onnx==1.23.2 onnxscript==0.7.2
    torch/bin/python -m tests.models.export [NAME ...]

A second run on the same machine writes the same bytes.
"""

from __future__ import annotations

import io
import sys
import warnings
import zipfile
from importlib import import_module
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import Tensor, nn

from tests.models.export.files import Weights, shortened
from tests.models.export.recipe import Recipe, with_drawn_weights
from tests.models.families import FAMILIES, Family

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The date of every array in an archive: bytes that are the same whenever they are made."""


def write(family: Family) -> None:
    """The exports of a family, their weights, and what torch computes."""
    recipe: Recipe = import_module(f"tests.models.export.{family.name}").RECIPE
    model = with_drawn_weights(recipe.model(), seed=0)
    torch.manual_seed(1)
    inputs = [recipe.inputs(**size) for size in family.sizes]
    folder = family.samples.parent
    folder.mkdir(parents=True, exist_ok=True)
    weights = Weights(family.weights.name)
    for exporter in family.exporters:
        for form in family.forms:
            proto = exported(model, recipe, family, inputs[0], exporter, form)
            family.path(exporter, form).write_bytes(shortened(proto, weights))
    family.weights.write_bytes(weights.content)
    save(family.samples, [pair for place, given in enumerate(inputs) for pair in answered(model, recipe, place, given)])


def exported(
    model: nn.Module, recipe: Recipe, family: Family, inputs: dict[str, Tensor], exporter: str, form: str
) -> onnx.ModelProto:
    """The model for the sizes of `inputs`, and where the form has dynamic dims, for all sizes within their bounds."""
    names = {"input_names": list(inputs), "output_names": list(recipe.outputs)}
    arguments = tuple(inputs.values())
    bounds = family.bounds(form)
    axes = {name: {axis: dim for axis, dim in recipe.axes[name].items() if dim in bounds} for name in inputs}
    if exporter == "dynamo":
        dims = {name: torch.export.Dim(name, min=low, max=high) for name, (low, high) in bounds.items()}
        shapes = tuple({axis: dims[dim] for axis, dim in dynamic.items()} for dynamic in axes.values())
        program = torch.onnx.export(model, arguments, **names, dynamo=True, verbose=False, dynamic_shapes=shapes)
        return program.model_proto
    stream = io.BytesIO()
    torch.onnx.export(model, arguments, stream, **names, dynamo=False, opset_version=17, dynamic_axes=axes)
    return onnx.load_model_from_string(stream.getvalue())


def answered(model: nn.Module, recipe: Recipe, place: int, inputs: dict[str, Tensor]) -> list[tuple[str, np.ndarray]]:
    """The inputs and what torch gives for them, by the names of their arrays."""
    with torch.no_grad():
        given = model(*inputs.values())
    outputs = given if isinstance(given, tuple) else (given,)
    named = {**inputs, **dict(zip(recipe.outputs, outputs, strict=True))}
    return [(f"{place}.{name}", np.ascontiguousarray(value.numpy())) for name, value in named.items()]


def save(path: Path, arrays: list[tuple[str, np.ndarray]]) -> None:
    """An archive that `numpy.load` reads, its bytes the same whenever it is made."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays:
            stream = io.BytesIO()
            np.lib.format.write_array(stream, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _EPOCH), stream.getvalue(), zipfile.ZIP_DEFLATED)


def main() -> None:
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    # The exporter that is replaced warns that it is, and of every shape that it takes for a constant.
    warnings.simplefilter("ignore")
    for family in FAMILIES:
        if sys.argv[1:] and family.name not in sys.argv[1:]:
            continue
        write(family)
        sizes = {path.name: path.stat().st_size for path in sorted(family.samples.parent.iterdir())}
        print(family.name, ", ".join(f"{name} {size}" for name, size in sizes.items()), flush=True)


if __name__ == "__main__":
    main()
