"""Proves of loads and stores of realised kernels that they stay in the memory that they address."""

from .kernel_memory import drop_records, memory_of
from .proof import accesses

__all__ = ["accesses", "drop_records", "memory_of"]
