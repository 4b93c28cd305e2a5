"""The standard streams of a command: of one that is closed, that nobody reads, or whose disk is full."""

from __future__ import annotations

import os
import sys
from io import BufferedWriter, RawIOBase, TextIOWrapper
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

OUTPUT: Final = "standard output"


class OutputError(OSError):
    """What a command prints cannot be written."""


def open_streams() -> None:
    """Have this process print on, whatever becomes of its standard streams.

    One that is closed is /dev/null from now on, and so is a pipe as soon as nobody reads it. A failure to write to
    stdout raises OutputError, once; one to write to stderr can be told to nobody.
    """
    sys.stdout = _until_failure(sys.stdout, OUTPUT)
    sys.stderr = _until_failure(sys.stderr, None)


def _until_failure(stream: TextIO | None, name: str | None) -> TextIO:
    if stream is None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        # It takes the number of the stream that is closed, which a child is to find open too.
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
    """Writes to `below` until that fails, and nowhere after it: Python tries once more when it ends."""

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
