"""Turn the end of a task without an answer into the error that its caller gets."""

from __future__ import annotations

import os
import signal
from typing import Any, Final

from tensorkiln.errors import (
    CrashedError,
    DeadlineExceededError,
    LostWorkerError,
    ResourceExhaustedError,
    TensorkilnError,
)

from .child import EXIT_OUT_OF_MEMORY
from .control import Ended, Limits
from .frames import FrameError

QUOTED_STDERR: Final = 4 << 10

# How the C++ runtime and LLVM say that an allocation failed, before they abort.
_OUT_OF_MEMORY_TEXTS: Final = ("out of memory", "bad_alloc", "Buffer allocation failed", "Cannot allocate memory")
# This close to the limit, a segmentation fault is an unchecked failed allocation, and SIGKILL comes from the OOM killer
# unless a cgroup reports otherwise.
_NEARLY_ALL: Final = 0.9
_FOREIGN: Final = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})
"""Signals that no compiler defect raises: an operator sends them, or a kernel short of memory."""
_NAMED: Final = frozenset(signal.Signals)


def verdict(ended: Ended, limits: Limits, stage: str) -> TensorkilnError:
    """The error of a process that ended without an answer; `details` describe its end."""
    details = facts(ended, stage)
    number = os.WTERMSIG(ended.status) if os.WIFSIGNALED(ended.status) else None
    if ended.cancelled and number == signal.SIGKILL:
        message = f"The process closed its socket or broke the protocol during {stage}, without an answer."
        return CrashedError(message, details=details)
    if ended.expired or number == signal.SIGXCPU:
        return DeadlineExceededError(
            f"The compile was ended during {stage} at its deadline of {limits.deadline_s:g} s.",
            details={**details, "deadline_s": limits.deadline_s},
        )
    if number == signal.SIGXFSZ:
        return ResourceExhaustedError(
            f"The compile wrote a file above the limit of {limits.file_mib} MiB during {stage}.",
            details={**details, "resource": "file", "limit_mib": limits.file_mib},
        )
    if _is_out_of_memory(ended, limits, number):
        return ResourceExhaustedError(
            f"The compile reached its memory limit of {limits.memory_mib} MiB during {stage}.",
            details={**details, "resource": "memory", "limit_mib": limits.memory_mib},
        )
    if number is not None and number in _FOREIGN:
        return LostWorkerError(
            f"Something outside the service ended the process by {signal_name(number)} during {stage}, at "
            f"{ended.grown_mib} of {limits.memory_mib} MiB; send the request again.",
            details=details,
        )
    how = f"by {signal_name(number)}" if number else f"with status {os.WEXITSTATUS(ended.status)}"
    return CrashedError(
        f"The process ended {how} during {stage}. This is a defect of the compiler, not of the service's state: "
        "the reproducer shows it again.",
        details=details,
    )


def too_much_output(limit_mib: int, stage: str) -> ResourceExhaustedError:
    return ResourceExhaustedError(
        f"The compile produced more than {limit_mib} MiB of output during {stage}.",
        details={"stage": stage, "signal": None, "resource": "output", "limit_mib": limit_mib},
    )


def garbled(error: FrameError, stage: str) -> CrashedError:
    return CrashedError(
        f"The process garbled its answer during {stage}: {error}.", details={"stage": stage, "signal": None}
    )


def facts(ended: Ended, stage: str) -> dict[str, Any]:
    """Facts from the operating system about the end of a process, and the end of its standard error."""
    killed = os.WIFSIGNALED(ended.status)
    return {
        "stage": stage,
        "signal": signal_name(os.WTERMSIG(ended.status)) if killed else None,
        "exit_status": None if killed else os.WEXITSTATUS(ended.status),
        "peak_mib": ended.peak_mib,
        "ran_s": round(ended.ran_s, 3),
        "cpu_s": round(ended.cpu_s, 3),
        "stderr": ended.stderr[-QUOTED_STDERR:],
    }


def signal_name(number: int) -> str:
    """The name of a signal, such as SIGSEGV; `signal 40` for one without a name, like most real-time signals."""
    return signal.Signals(number).name if number in _NAMED else f"signal {number}"


def _is_out_of_memory(ended: Ended, limits: Limits, number: int | None) -> bool:
    if number is None:
        return os.WEXITSTATUS(ended.status) == EXIT_OUT_OF_MEMORY
    if number == signal.SIGABRT and any(text in ended.stderr for text in _OUT_OF_MEMORY_TEXTS):
        return True
    if number == signal.SIGKILL and ended.ran_out is not None:
        return ended.ran_out
    return number in (signal.SIGSEGV, signal.SIGKILL) and ended.grown_mib >= limits.memory_mib * _NEARLY_ALL
