"""The figures of a worker: those of all its processes, told by one more of them.

`python -m service.worker.figures ADDRESS DIRECTORY`, which the worker starts where KILN_WORKER_METRICS is set. It ends
with its standard input. A thread of the worker itself would be there when the worker forks.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from tensorkiln.errors import UnavailableError

_DIRECTORY: Final = "PROMETHEUS_MULTIPROC_DIR"
_READY: Final = b"ready\n"


@contextmanager
def figures(address: str) -> Generator[None]:
    """Inside the block, /metrics at `address` has the figures of this process and of those that it forks.

    Has to be entered before anything is counted, as the Python client of Prometheus asks for. UnavailableError when the
    address is none, or in use. With an empty address nothing is told.
    """
    if not address:
        yield
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise UnavailableError(f"KILN_WORKER_METRICS is {address!r}: give an address and a port, as in 127.0.0.1:9100.")
    with tempfile.TemporaryDirectory(prefix="kiln-figures-") as directory:
        os.environ[_DIRECTORY] = directory
        command = [sys.executable, "-P", "-m", "service.worker.figures", host.strip("[]"), port]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as teller:
            assert teller.stdin is not None
            assert teller.stdout is not None
            try:
                if teller.stdout.readline() != _READY:
                    raise UnavailableError(f"The figures of the worker cannot be told at {address}.")
                yield
            finally:
                teller.stdin.close()


def main() -> int:
    """The exit status."""
    from prometheus_client import CollectorRegistry, start_http_server
    from prometheus_client.multiprocess import MultiProcessCollector

    host, port = sys.argv[1:]
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    try:
        start_http_server(int(port), host, registry)
    except OSError as error:
        print(f"{host}:{port}: {error.strerror}", file=sys.stderr)
        return 1
    sys.stdout.buffer.write(_READY)
    sys.stdout.buffer.flush()
    sys.stdin.buffer.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
