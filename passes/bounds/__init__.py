"""Proves that no load or store of a realised kernel leaves the memory that it addresses."""

from .kernel_memory import memory_of
from .proof import accesses, prove_bounds

__all__ = ["accesses", "memory_of", "prove_bounds"]
