"""Progress and errors (one line each) on stderr, and the exit code of each error."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.status import Status
from rich.text import Text

from ..errors import (
    AuthError,
    CallError,
    CompileError,
    DeviceError,
    InfrastructureError,
    InvalidGraphError,
    LimitExceededError,
    RateLimitedError,
    TensorkilnError,
    UnsupportedGraphError,
    UntrustedArtifactError,
)
from .printable import in_a_line, in_lines

if TYPE_CHECKING:
    from ..sdk.job_records import JobEvent

REFUSED, USAGE, UNAVAILABLE, UNTRUSTED, MISFIT, INTERRUPTED = 1, 2, 3, 5, 6, 130

SAYS_NOTHING_OF_GRAPHS = (InfrastructureError, RateLimitedError, AuthError)
"""Errors between the user and the service, independent of the request."""

_EXIT_CODES: tuple[tuple[tuple[type[TensorkilnError], ...], int], ...] = (
    ((InvalidGraphError, UnsupportedGraphError, LimitExceededError, CompileError), REFUSED),
    (SAYS_NOTHING_OF_GRAPHS, UNAVAILABLE),
    ((UntrustedArtifactError,), UNTRUSTED),
    ((CallError, DeviceError), MISFIT),
)
_MAX_POINTERS = 5
_PIPE_COLUMNS = 160

Step = Callable[[str], None]


def exit_code(error: TensorkilnError) -> int:
    """The exit code of `kiln` for an error."""
    return next((code for classes, code in _EXIT_CODES if isinstance(error, classes)), USAGE)


def one_line(error: TensorkilnError) -> str:
    """`error[code] at /nodes/3: message`, without line breaks, and with control characters escaped."""
    shown = error.pointers[:_MAX_POINTERS]
    more = len(error.pointers) - len(shown)
    where = f" at {', '.join(shown)}" if shown else ""
    where += f" and {more} more" if more else ""
    return in_a_line(f"error[{error.code}]{where}: {' '.join(error.message.split())}")


def output() -> Console:
    """The console for results; a pipe, which has no width, gets wide tables."""
    return _console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPE_COLUMNS)


@contextmanager
def reported() -> Generator[Step, None, None]:
    """Run a command: `step("compiling")` shows what it is doing; errors and warnings become a line each.

    After an error, the command ends with its exit code.
    """
    console = _console(stderr=True)
    try:
        with console.status("starting") as status, warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: _warned(console, message)
            yield _stepper(status)
    except TensorkilnError as error:
        console.print(one_line(error), style="red", soft_wrap=True)
        raise typer.Exit(exit_code(error)) from None
    except OSError as error:
        raise typer.Exit(unwritten(error)) from None
    except KeyboardInterrupt:
        console.print("interrupted", style="red")
        raise typer.Exit(INTERRUPTED) from None


def _warned(console: Console, message: Warning | str) -> None:
    console.print(in_a_line(f"warning: {message}"), style="yellow", soft_wrap=True)


def unwritten(error: OSError) -> int:
    """Print why a file or a stream cannot be read or written, and return the exit code."""
    _console(stderr=True).print(in_a_line(f"error[file]: {error}"), style="red", soft_wrap=True)
    return USAGE


def shown(step: Step, what: str, targets: Sequence[str]) -> Callable[[JobEvent], None]:
    """A function that shows the events of a job as steps."""

    def show(event: JobEvent) -> None:
        target = f" for {targets[event.target]}" if event.target is not None else ""
        step(f"{what}{target}: {event.stage or event.kind}")

    return show


class _Console(Console):
    """Shows strings, also in tables, with control characters escaped."""

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(in_lines(text), **how)


def _console(*, stderr: bool = False, width: int | None = None) -> Console:
    # The output contains untrusted text: `[cpu]` must not be markup, nor `:x:` an emoji.
    return _Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def _stepper(status: Status) -> Step:
    def step(text: str) -> None:
        status.update(Text(in_a_line(text)))

    return step
