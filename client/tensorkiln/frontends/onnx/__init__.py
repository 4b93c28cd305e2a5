"""ONNX models as graphs. Needs the `onnx` package: install `tensorkiln[onnx]`."""

from .load import load
from .operators import OPERATORS

__all__ = ["OPERATORS", "load"]
