"""Displays of compiled programs, kernels and schedules: lines, and HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .html_table import html_lines, html_table
from .signature import Signature, signature_of

_COLUMNS = ("kernel", "name", "buffers", "grid", "group", "registers", "spilled bytes", "code bytes")


def target_line(target: Any) -> str:
    """The name of a target: `cpu:x86-64-v3`, `cuda:sm_90`."""
    return f"{target.kind}:{target.cpu or target.arch}"


def program_line(kind: str, program: Any, signature: Signature) -> str:
    """One line with a program's signature, number of kernels and target."""
    count = len(program.kernels)
    kernels = f"{count} kernel{'' if count == 1 else 's'}"
    return f"<{kind} {signature}, {kernels} for {target_line(program.target)}>"


def program_html(program: Any, signature: Signature | None = None) -> str:
    """HTML of the signature, the provenance and the kernels of a program."""
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
    """One line with a kernel's name, number of buffers and launch size."""
    group = "" if kernel.local_size is None else f", groups of {_size(kernel.local_size)}"
    return f"<Kernel {kernel.name}: {kernel.buf_count} buffers, grid {_size(kernel.global_size)}{group}>"


def kernels_html(kernels: Sequence[Any]) -> str:
    """An HTML table of kernels with the resources that the code generator reports."""
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
    """One line with a schedule's number of items, its critical path and estimated time."""
    count, path = len(schedule.items), len(schedule.critical_path)
    estimate = f", estimated {schedule.estimated_runtime_ns} ns" if schedule.estimated_runtime_ns else ""
    return f"<Schedule of {count} item{'' if count == 1 else 's'}, {path} on the critical path{estimate}>"


def schedule_html(schedule: Any) -> str:
    """An HTML table of a schedule's items: operation, dependencies and estimates."""
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
    """HTML of an error's code, message, pointers and details."""
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
