"""Values of labels, from closed sets: an unknown value from outside becomes `other`."""

from __future__ import annotations

import signal
from asyncio import CancelledError
from collections.abc import Mapping
from typing import Any, Final

from tensorkiln.errors import ResourceExhaustedError, TensorkilnError

OTHER: Final = "other"
NONE: Final = "none"
OK: Final = "ok"

STAGES: Final = frozenset(
    (
        *("start", "parse", "validate", "canonicalize", "render", "load", "return"),
        *("from-graph", "decompose", "split-reductions", "block-channels", "form-kernels", "merge-kernels"),
        *("to-linalg", "pack-parameters", "schedule", "realise"),
        *("lower", "entries", "translate", "codegen", "assemble", "inner"),
    )
)
"""The stages of every kind of task; a compromised process may name others."""
_TARGETS: Final = frozenset({"cpu", "cuda", "rocm"})
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_RESOURCES: Final = frozenset({"memory", "file", "output"})
# Prefixes of the contract's reasons, and their values as labels.
_REASONS: Final = {
    "same request": "same_request",
    "same action": "same_action",
    "first request": "first_request",
    "differs in ": "differs",
    "the stored program has no stage dumps": "no_dumps",
    "the stored program was damaged": "damaged",
    "the stored program was missing a blob": "damaged",
    "the caller does not read the store": "not_readable",
}


def stage(name: str) -> str:
    return name if name in STAGES else OTHER


def target(described: Any) -> str:
    """The kind of a target, given as an object; `none` where there is no target."""
    if described is None:
        return NONE
    kind = described.get("kind") if isinstance(described, Mapping) else None
    return kind if isinstance(kind, str) and kind in _TARGETS else OTHER


def method(name: str) -> str:
    return name if name in _METHODS else OTHER


def reason(text: str) -> str:
    """The label of the reason for a hit or a miss."""
    return next((short for beginning, short in _REASONS.items() if text.startswith(beginning)), OTHER)


def outcome(error: BaseException | None) -> str:
    """How something ended: `ok`, the code of its error, `cancelled`, or `defect`."""
    if error is None:
        return OK
    if isinstance(error, TensorkilnError):
        return error.code
    return "cancelled" if isinstance(error, CancelledError | GeneratorExit) else "defect"


def cause(error: TensorkilnError) -> str:
    """Why a task was ended: `deadline`, or the resource of which it took too much."""
    if not isinstance(error, ResourceExhaustedError):
        return "deadline"
    resource = error.details.get("resource")
    return resource if isinstance(resource, str) and resource in _RESOURCES else OTHER


def signal_of(error: TensorkilnError) -> str:
    """What ended a process that crashed: a signal, `exit`, or `none` when only its answer was invalid."""
    name, status = error.details.get("signal"), error.details.get("exit_status")
    if isinstance(name, str):
        return name if name in signal.Signals.__members__ else OTHER
    return "exit" if isinstance(status, int) else NONE
