"""Shape and dtype of every node, and every rule of legality."""

from .constraint import Constraint
from .definitions import innermost, innermost_kinds
from .inference import Inference
from .walk import infer

__all__ = ["Constraint", "Inference", "infer", "innermost", "innermost_kinds"]
