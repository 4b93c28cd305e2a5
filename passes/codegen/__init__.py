"""LLVM dialect in, object code out: the only package that uses llvmlite."""
