"""Lines of `tensorkiln.build` as text, read without running them as Python.

Text is parsed, and its statements are followed one by one: assignments, calls of the builder's functions and methods,
operators, literals and indices. Every other construct is refused with its line and column.
"""

from .reading import BuilderText, read_builder_text
from .syntax import MAX_NESTING, MAX_TEXT_BYTES

__all__ = ["MAX_NESTING", "MAX_TEXT_BYTES", "BuilderText", "read_builder_text"]
