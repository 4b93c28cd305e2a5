"""ONNX models as graphs. Needs the `onnx` package: install `tensorkiln[onnx]`."""

from .load import load
from .ml import OPERATORS as LEARNED_OPERATORS
from .operators import OPERATORS

__all__ = ["LEARNED_OPERATORS", "OPERATORS", "load"]
