"""The tensor graph in MLIR: the `kiln` dialect, how a graph becomes a module of it, and how its diagnostics read."""
