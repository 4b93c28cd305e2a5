"""Import of ONNX models as graphs. Needs the `onnx` package: install `tensorkiln[onnx]`."""

from importlib.util import find_spec

from ...uncollected import uncollected

if find_spec("onnx") is None:
    raise ModuleNotFoundError("ONNX models need the package onnx: run `pip install 'tensorkiln[onnx]'`.", name="onnx")

with uncollected():
    from .load import load
    from .operators import DOMAINS, OPERATORS

__all__ = ["DOMAINS", "OPERATORS", "load"]
