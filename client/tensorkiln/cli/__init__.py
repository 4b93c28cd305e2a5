"""The command `kiln`: serve, compile, run and validate tensor graphs."""

from __future__ import annotations

import sys
from importlib.util import find_spec


def main() -> None:
    """Run `kiln` with the arguments of this process; ends with the exit code of the command."""
    missing = [package for package in ("typer", "rich", "packaging") if find_spec(package) is None]
    if missing:
        sys.exit(f"kiln needs {' and '.join(missing)}: run `pip install 'tensorkiln[cli]'`.")
    from .app import run_command

    run_command()
