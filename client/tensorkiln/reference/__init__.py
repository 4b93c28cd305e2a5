"""The executable semantics of every node, in NumPy, written to be read: what compiled code is compared with."""

from .evaluate import evaluate

__all__ = ["evaluate"]
