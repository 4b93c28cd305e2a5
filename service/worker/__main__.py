"""`python -m tensorkiln_server worker`: compile what the services of a farm ask for, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Final

from service.observe.log import configure_log
from service.observe.traces import record_spans, require_exporter
from service.sandbox.cgroups import move_into_leaf
from service.settings import Settings, read_settings
from tensorkiln.errors import UnavailableError

from .bench import Bench
from .figures import figures

_ENDS: Final = (signal.SIGTERM, signal.SIGINT)


def main() -> int:
    settings = read_settings()
    if settings is None:
        return 1
    configure_log(settings.log)
    end_spans = None
    try:
        if settings.tracing:
            require_exporter()
            end_spans = record_spans()
        asyncio.run(_work(settings))
    except UnavailableError as error:
        print(f"The worker cannot start: {error}", file=sys.stderr)
        return 1
    finally:
        if end_spans is not None:
            end_spans()
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


if __name__ == "__main__":
    sys.exit(main())
