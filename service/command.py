"""The command line of the service."""

from __future__ import annotations

import argparse
import gc
import sys
from typing import Final

from tensorkiln.errors import TensorkilnError

from .serve import serve
from .told import settings_or_told, told

FAILED: Final = 1
"""The exit status of a service that has not started."""
_LAST_PORT: Final = 65_535


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m service", description="Run the tensorkiln compile service.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=_port, default=8080, help="port to listen on, 0 for any (default: %(default)s)")
    parser.add_argument("--uds", help="listen on this Unix socket instead")
    arguments = parser.parse_args()
    settings = settings_or_told()
    if settings is None:
        return FAILED
    try:
        return serve(settings, arguments.host, arguments.port, arguments.uds)
    except (TensorkilnError, OSError) as error:
        print(*told(error), sep="\n", file=sys.stderr)
        return FAILED
    finally:
        # The end of the interpreter would search all that there is for garbage, for a quarter of a second.
        gc.freeze()


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{port} is no port; there are 0 to {_LAST_PORT}")
    return port
