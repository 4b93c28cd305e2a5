"""Proofs that loads and stores of realised kernels are in bounds."""

from .proof import accesses

__all__ = ["accesses"]
