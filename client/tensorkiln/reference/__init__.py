"""The executable semantics of every node, in readable NumPy: the reference for compiled code."""

from .evaluate import evaluate

__all__ = ["evaluate"]
