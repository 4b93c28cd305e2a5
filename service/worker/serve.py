"""A worker as a process: its start, its signals and its end."""

from __future__ import annotations

import asyncio
import signal
from typing import Final

from service.observe.export import record_spans
from service.sandbox.cgroups import move_into_leaf
from service.settings import Settings

from .bench import Bench
from .figures import figures

_ENDS: Final = (signal.SIGTERM, signal.SIGINT)


def serve(settings: Settings) -> None:
    """Work until SIGTERM, which lets what is begun come to its end, or SIGQUIT, which does not.

    UnavailableError when the isolation, the key or the store is not what a worker needs.
    """
    end_spans = record_spans() if settings.tracing else None
    try:
        asyncio.run(_work(settings))
    finally:
        if end_spans is not None:
            end_spans()


async def _work(settings: Settings) -> None:
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
