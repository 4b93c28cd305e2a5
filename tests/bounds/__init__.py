"""Proves of loads and stores of realised kernels that they stay in the memory that they address."""

from .proof import accesses

__all__ = ["accesses"]
