"""The log: JSON lines on the standard error, each with the trace, the tenant and the job that it is about."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

from .traces import trace_id


def configure_log(level: str) -> None:
    """Log everything from `level` on (debug, info, warning, error)."""
    processors: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        _add_trace,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
        structlog.processors.format_exc_info,
    ]
    render = structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*processors, render],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )
    # For uvicorn and asyncio.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(render, foreign_pre_chain=processors))
    logging.basicConfig(level=max(logging.WARNING, logging.getLevelNamesMapping()[level.upper()]), handlers=[handler])


def _add_trace(logger: Any, method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    found = trace_id()
    if found is not None:
        line["trace"] = found
    return line
