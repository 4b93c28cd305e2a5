"""ONNX models as graphs. Needs the `onnx` package: install `tensorkiln[onnx]`."""

from .load import load
from .operators import DOMAINS, OPERATORS

__all__ = ["DOMAINS", "OPERATORS", "load"]
