"""The command line of the service."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable
from typing import Final

from service.process.interpreter import frozen_heap, load_fastapi, load_structlog
from service.sandbox.cgroups import move_into_leaf
from service.sandbox.confine import die_with_parent
from tensorkiln.errors import TensorkilnError

from .fork_servers import ForkServers

FAILED: Final = 1
"""The exit status of a service that could not start."""


def main() -> int:
    arguments = _arguments()
    begun = ForkServers()
    try:
        # Fork servers are in the cgroup of the service, and end with it.
        if arguments.handed_down is None:
            move_into_leaf()
        else:
            die_with_parent(arguments.handed_down[0])
        # While they load the compiler, this process loads its settings, and then the application.
        if arguments.private:
            begun.begin_for_one()
        return _serve(arguments, begun)
    except (TensorkilnError, OSError) as error:
        from service.settings import error_lines

        print(*error_lines(error), sep="\n", file=sys.stderr)
        return FAILED
    finally:
        begun.abandon()
        # Otherwise the interpreter collects garbage at its end, which takes a quarter of a second.
        gc.freeze()


def _serve(arguments: argparse.Namespace, begun: ForkServers) -> int:
    with frozen_heap():
        load_structlog()
        from service.settings import read_settings
    settings = read_settings()
    if settings is None:
        return FAILED
    where = (arguments.host, arguments.port, arguments.uds)
    if arguments.handed_down is None and arguments.workers > 1:
        with frozen_heap():
            from .prefork import serve_by_workers
        return serve_by_workers(settings, *where, arguments.workers)
    if arguments.handed_down is not None:
        settings = settings.for_one_of(arguments.workers)
    begun.begin(settings)
    with frozen_heap():
        load_fastapi()
        from .serve import serve, serve_as_worker
    if arguments.handed_down is not None:
        _, socket, place = arguments.handed_down
        return serve_as_worker(settings, begun, socket, place)
    return serve(settings, begun, *where)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tensorkiln_server", description="Run the tensorkiln compile service."
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=_within(0, 65_535), default=8080, help="port, 0 for any (default: %(default)s)")
    parser.add_argument("--uds", help="listen on this Unix socket instead")
    parser.add_argument(
        "--workers", type=_within(1, 256), default=1, help="processes that serve, over one store (default: %(default)s)"
    )
    parser.add_argument("--handed-down", type=int, nargs=3, help=argparse.SUPPRESS)
    # For the program that starts the service for itself, and waits for it.
    parser.add_argument("--private", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _within(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text} is not one of {least} to {most}")
        return int(text)

    return parse
