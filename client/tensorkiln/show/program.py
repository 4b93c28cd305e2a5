"""Compiled programs, their kernels and their schedule in a line, and in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .html_table import html_lines, html_table
from .signature import Signature, signature_of

_COLUMNS = ("kernel", "name", "buffers", "grid", "group", "registers", "spilled bytes", "code bytes")


def target_line(target: Any) -> str:
    """What a program is for: `cpu:x86-64-v3`, `cuda:sm_90`."""
    return f"{target.kind}:{target.cpu or target.arch}"


def program_line(kind: str, program: Any, signature: Signature) -> str:
    """What a program is called with, for what it was compiled, and of how many kernels it is."""
    count = len(program.kernels)
    kernels = f"{count} kernel{'' if count == 1 else 's'}"
    return f"<{kind} {signature}, {kernels} for {target_line(program.target)}>"


def program_html(program: Any, signature: Signature | None = None) -> str:
    """The signature, where the program is from, and its kernels."""
    digest = program.digest[:12] or "none"
    reason = f" ({program.cache.reason})" if program.cache.reason else ""
    facts = (
        f"target {target_line(program.target)}",
        f"digest {digest}, build {program.provenance.build_id[:12] or 'unknown'}",
        f"cache {program.cache.status}{reason}",
    )
    about = html_lines("compiled", facts)
    return (signature or signature_of(program)).html() + about + kernels_html(program.kernels)


def kernel_line(kernel: Any) -> str:
    """The name of a kernel, its buffers and its launch size."""
    group = "" if kernel.local_size is None else f", groups of {_size(kernel.local_size)}"
    return f"<Kernel {kernel.name}: {kernel.buf_count} buffers, grid {_size(kernel.global_size)}{group}>"


def kernels_html(kernels: Sequence[Any]) -> str:
    """A row for each kernel, with what its code generator says of it."""
    rows = [
        (
            *(place, kernel.name, kernel.buf_count, _size(kernel.global_size)),
            *("" if kernel.local_size is None else _size(kernel.local_size),),
            *(_resource(kernel, name) for name in ("registers", "spill_bytes", "code_bytes")),
        )
        for place, kernel in enumerate(kernels)
    ]
    return html_table(f"{len(kernels)} kernels", _COLUMNS, rows)


def schedule_line(schedule: Any) -> str:
    """How many items a schedule has, and how long its critical path is."""
    count, path = len(schedule.items), len(schedule.critical_path)
    estimate = f", estimated {schedule.estimated_runtime_ns} ns" if schedule.estimated_runtime_ns else ""
    return f"<Schedule of {count} item{'' if count == 1 else 's'}, {path} on the critical path{estimate}>"


def schedule_html(schedule: Any) -> str:
    """A row for each item: what it does, what it waits for, and what is estimated of it."""
    critical = set(schedule.critical_path)
    rows = [
        (
            *(item.item_id, item.operation.op, getattr(item.operation, "kernel_name", "")),
            *(", ".join(map(str, item.depends_on)), "yes" if item.item_id in critical else ""),
            *_estimates(schedule, item.item_id),
        )
        for item in schedule.items
    ]
    columns = ("item", "operation", "name", "after", "critical", "flops", "bytes read", "bytes written", "estimate, ns")
    return html_table(schedule_line(schedule)[1:-1], columns, rows)


def error_html(error: Any) -> str:
    """The code of an error, its message and what it points at."""
    details = [f"{name}: {value}" for name, value in error.details.items()]
    return html_lines(f"{type(error).__name__} ({error.code})", [error.message, *error.pointers, *details])


def _estimates(schedule: Any, item: int) -> tuple[object, ...]:
    if not schedule.analysis:
        return ("", "", "", "")
    found = schedule.analysis[item]
    return (found.flops, found.bytes_read, found.bytes_written, found.est_ns)


def _resource(kernel: Any, name: str) -> object:
    value = getattr(kernel.resources, name, None)
    return "" if value is None else value


def _size(size: Sequence[object]) -> str:
    return " x ".join(map(str, size))
