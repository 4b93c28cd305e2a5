"""ONNX models as graphs. Needs the `onnx` package: install `tensorkiln[onnx]`."""

from .load import load
from .model import OnnxModel
from .operators import OPERATORS

__all__ = ["OPERATORS", "OnnxModel", "load"]
