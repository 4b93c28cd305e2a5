"""The news of a request, out of what its jobs tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .job_work import Tell


def of_no_target(tell: Tell) -> Callable[[str], None]:
    """Tells a stage that is for the whole of a request."""
    return lambda stage: tell({"stage": stage, "target": None})


def about_target(tell: Tell, target: int) -> Callable[[Mapping[str, Any]], None]:
    """Tells what happens to the compile for one of its targets."""
    return lambda news: tell({**news, "target": target})
