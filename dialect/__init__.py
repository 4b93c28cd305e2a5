"""The tensor graph in MLIR: the `kiln` dialect, the conversion of a graph to a module, and its diagnostics."""
