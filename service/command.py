"""The command line of the service."""

from __future__ import annotations

import argparse
import gc
import sys
from typing import Final

from tensorkiln.errors import TensorkilnError

from .serve import serve, serve_as_worker, serve_by_workers
from .told import settings_or_told, told

FAILED: Final = 1
"""The exit status of a service that has not started."""
_LAST_PORT: Final = 65_535
_MOST_WORKERS: Final = 256


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m service", description="Run the tensorkiln compile service.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=_port, default=8080, help="port to listen on, 0 for any (default: %(default)s)")
    parser.add_argument("--uds", help="listen on this Unix socket instead")
    parser.add_argument(
        "--workers", type=_count, default=1, help="processes that serve, over one store (default: %(default)s)"
    )
    parser.add_argument("--handed-down", type=int, nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    settings = settings_or_told()
    if settings is None:
        return FAILED
    try:
        if arguments.handed_down is not None:
            parent, socket, place = arguments.handed_down
            return serve_as_worker(settings.for_one_of(arguments.workers), parent, socket, place)
        if arguments.workers > 1:
            return serve_by_workers(settings, arguments.host, arguments.port, arguments.uds, arguments.workers)
        return serve(settings, arguments.host, arguments.port, arguments.uds)
    except (TensorkilnError, OSError) as error:
        print(*told(error), sep="\n", file=sys.stderr)
        return FAILED
    finally:
        # The end of the interpreter would search all that there is for garbage, for a quarter of a second.
        gc.freeze()


def _count(text: str) -> int:
    count = int(text)
    if not 1 <= count <= _MOST_WORKERS:
        raise argparse.ArgumentTypeError(f"{count} workers are not possible; there are 1 to {_MOST_WORKERS}")
    return count


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{port} is no port; there are 0 to {_LAST_PORT}")
    return port
