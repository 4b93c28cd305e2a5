"""`python -m tensorkiln_server [COMMAND] [ARGUMENT...]`: run a command of the server.

Without a command, or with an option in its place, it runs the compile service.
A wheel and a checkout have the same commands.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from typing import Final

from . import PREFIX

COMMANDS: Final = {
    "serve": "service",
    "worker": "service.worker",
    "identity": "service.identity",
    "trust": "service.trust",
    "scrub": "service.upkeep.scrub",
    "passes": "passes",
}
_USAGE: Final = f"usage: python -m tensorkiln_server [{' | '.join(COMMANDS)}] [ARGUMENT...]"


def module_of(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The module that runs a command line, and its arguments. ValueError for an unknown command."""
    if not arguments or arguments[0].startswith("-"):
        return f"{PREFIX}service", [*arguments]
    command, *rest = arguments
    if command not in COMMANDS:
        raise ValueError(f"there is no command {command!r}")
    return f"{PREFIX}{COMMANDS[command]}", rest


def main() -> None:
    """Run the module as a program; exit status 2 for an unknown command."""
    try:
        module, rest = module_of(sys.argv[1:])
    except ValueError as error:
        print(f"{_USAGE}\npython -m tensorkiln_server: {error}", file=sys.stderr)
        sys.exit(2)
    sys.argv[1:] = rest
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
