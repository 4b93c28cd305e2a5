"""`python -m tensorkiln_server worker`: compile what the services of a farm ask for, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from prometheus_client import make_wsgi_app, start_http_server

from service.observe.telemetry import configure_log, recorded
from service.sandbox.cgroups import move_into_leaf
from service.settings import Settings, read_settings
from tensorkiln.errors import UnavailableError

from .bench import Bench

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

_ENDS: Final = (signal.SIGTERM, signal.SIGINT)


def main() -> int:
    settings = read_settings()
    if settings is None:
        return 1
    configure_log(settings.log)
    try:
        with recorded(settings.tracing):
            asyncio.run(_work(settings))
    except UnavailableError as error:
        print(f"The worker cannot start: {error}", file=sys.stderr)
        return 1
    return 0


async def _work(settings: Settings) -> None:
    """Work until SIGTERM, which lets started orders finish, or SIGQUIT. UnavailableError when it cannot start."""
    move_into_leaf()
    bench, ending = Bench.on(settings), asyncio.Event()
    loop = asyncio.get_running_loop()
    try:
        await bench.start()
        with figures(settings.worker_metrics, bench.is_ready):
            working = asyncio.create_task(bench.work(ending))
            for number in _ENDS:
                loop.add_signal_handler(number, ending.set)
            loop.add_signal_handler(signal.SIGQUIT, working.cancel)
            print("tensorkiln worker is ready", flush=True)
            await asyncio.wait({working})
    finally:
        await bench.close()
    if not working.cancelled():
        working.result()


@contextmanager
def figures(address: str, is_ready: Callable[[], bool]) -> Generator[None]:
    """Inside the block, /metrics and /readyz are served at `address`, if any. UnavailableError if it cannot be used."""
    if not address:
        yield
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise UnavailableError(f"KILN_WORKER_METRICS is {address!r}: give an address and a port, as in 127.0.0.1:9100.")
    metrics = make_wsgi_app()

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/readyz":
            return metrics(environ, start)
        is_fit = is_ready()
        start("200 OK" if is_fit else "503 Service Unavailable", [("Content-Type", "text/plain")])
        return [b"ready\n" if is_fit else b"this worker does not compile\n"]

    try:
        server, telling = start_http_server(int(port), host.strip("[]"))
    except OSError as error:
        raise UnavailableError(f"The metrics of the worker cannot be served at {address}: {error.strerror}.") from None
    server.set_app(answer)
    with server:
        try:
            yield
        finally:
            server.shutdown()
            telling.join()


if __name__ == "__main__":
    sys.exit(main())
