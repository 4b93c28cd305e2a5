"""Errors that keep a process from starting, as lines for an operator."""

from __future__ import annotations

import re
import sys
from typing import Any

from pydantic import ValidationError
from pydantic_settings import SettingsError

from tensorkiln.errors import TensorkilnError
from tensorkiln.reasons import reason

from .settings import Settings

_FIELD = re.compile(r'field "(\w+)"')


def read_settings() -> Settings | None:
    """Read the settings of this process; None when they are invalid, with the reasons on standard error."""
    try:
        return Settings()
    except (SettingsError, ValidationError) as error:
        print(*error_lines(error), sep="\n", file=sys.stderr)
        return None


def error_lines(error: TensorkilnError | OSError | SettingsError | ValidationError) -> list[str]:
    """One line per error."""
    if isinstance(error, ValidationError):
        found = error.errors(include_url=False, include_input=False)  # which may be a secret
        return [_setting(problem["loc"], reason(problem, subject="it")) for problem in found]
    if isinstance(error, SettingsError):
        field = _FIELD.search(str(error))
        return [_setting([field[1] if field else "*"], "It is not the JSON that it has to be")]
    if isinstance(error, OSError):
        return [f"The service cannot start: {' '.join(str(error).split())}."]
    return [" ".join(str(error).split())]


def _setting(where: Any, what: str) -> str:
    return f"KILN_{'_'.join(str(step) for step in where).upper()}: {what}; docs/operations.md lists the settings."
