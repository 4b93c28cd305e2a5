"""Handling of standard streams that are closed, that have no reader, or whose disk is full."""

from __future__ import annotations

import os
import sys
from io import BufferedWriter, RawIOBase, TextIOWrapper
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

OUTPUT: Final = "standard output"


class OutputError(OSError):
    """The output of a command cannot be written."""


def open_streams() -> None:
    """Make writes to the standard streams safe for this process.

    A closed stream is replaced by /dev/null, and so is a pipe once it has no reader. A failure to write to stdout
    raises OutputError, once; a failure to write to stderr is ignored, because it cannot be reported.
    """
    sys.stdout = _until_failure(sys.stdout, OUTPUT)
    sys.stderr = _until_failure(sys.stderr, None)


def _until_failure(stream: TextIO | None, name: str | None) -> TextIO:
    if stream is None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        # It gets the file descriptor of the closed stream, which must be open in child processes, too.
        os.set_inheritable(nowhere, True)
        return open(nowhere, "w", encoding="utf-8", closefd=False)
    if not isinstance(stream, TextIOWrapper):
        return stream
    stream.flush()
    below: Any = stream.buffer
    return TextIOWrapper(
        BufferedWriter(_UntilFailure(getattr(below, "raw", below), name)),
        stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering or stream.write_through,
    )


class _UntilFailure(RawIOBase):
    """Writes to `below` until that fails, then discards output, because Python flushes once more at exit."""

    def __init__(self, below: RawIOBase, name: str | None) -> None:
        self._below = below
        self._name = name
        self._has_failed = False

    def write(self, content: ReadableBuffer, /) -> int | None:
        if not self._has_failed:
            try:
                return self._below.write(content)
            except OSError as error:
                self._has_failed = True
                if self._name is not None and not isinstance(error, BrokenPipeError):
                    raise OutputError(error.errno, error.strerror, self._name) from None
        return memoryview(content).nbytes

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._below.isatty()

    def fileno(self) -> int:
        return self._below.fileno()
