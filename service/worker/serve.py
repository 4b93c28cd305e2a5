"""A Celery worker with its processes."""

from __future__ import annotations

import os

from celery.signals import worker_ready

from service.engine.farm.app import declare, farm_app
from service.engine.farm.message import queue_name
from service.sandbox.cgroups import move_into_leaf
from service.settings import Settings

from .check import require_start
from .consuming import Consuming
from .station import Station


def serve(settings: Settings) -> int:
    """Work in `settings.concurrency` processes until SIGTERM, which lets what is begun come to its end.

    1 when one of the processes could not begin. UnavailableError when none could.
    """
    app = farm_app(settings)
    require_start(settings)
    move_into_leaf()
    with app.connection_for_write() as connection:
        connection.ensure_connection(interval_start=0.2, interval_step=0.2, interval_max=5)
        declare(app, connection)
    consuming = Consuming()
    consuming.install(app)
    station = Station(settings, consuming)
    station.install(app)
    worker_ready.connect(lambda **_: _ready(station), weak=False)
    worker = app.Worker(
        hostname=f"{settings.worker}.{os.getpid()}",
        pool="prefork",
        concurrency=settings.concurrency,
        queues=[queue_name()],
        loglevel="WARNING",
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        quiet=True,
    )
    worker.start()
    return 1 if station.has_failed else worker.exitcode or 0


def _ready(station: Station) -> None:
    if not station.has_failed:
        print("tensorkiln worker is ready", flush=True)
