"""A safe interpreter for `tensorkiln.build` scripts: the text is not executed as Python.

It parses the text and interprets its statements: assignments, calls of the builder's functions and methods, operators,
literals and indices. Any other construct is refused with its line and column.
"""

from .reading import BuilderText, read_builder_text
from .syntax import MAX_NESTING, MAX_TEXT_BYTES

__all__ = ["MAX_NESTING", "MAX_TEXT_BYTES", "BuilderText", "read_builder_text"]
