"""Proofs that loads and stores of realised kernels are in bounds."""

from .kernel_memory import Realised
from .proof import accesses

__all__ = ["Realised", "accesses"]
