"""Modules for MLIR's Python bindings, which search for one per dialect at each operation until they find it."""
