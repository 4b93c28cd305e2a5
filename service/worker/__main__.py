"""`python -m service.worker`: compile what the services of a farm ask for, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import sys

from service.observe.export import require_exporter
from service.observe.log import configure_log
from service.process.frozen_heap import frozen_heap
from service.process.startup_errors import read_settings
from service.settings import Settings
from tensorkiln.errors import UnavailableError

from .figures import figures


def main() -> int:
    """The exit status."""
    settings = read_settings()
    if settings is None:
        return 1
    configure_log(settings.log)
    try:
        return work(settings)
    except UnavailableError as error:
        print(error, file=sys.stderr)
        return 1


def work(settings: Settings) -> int:
    """Work until a signal; the exit status. UnavailableError without a broker, or without Celery."""
    if not settings.broker.get_secret_value():
        raise UnavailableError("A worker takes its orders from a broker: set KILN_BROKER to an amqp:// URL.")
    if settings.tracing:
        require_exporter()
    with figures(settings.worker_metrics):
        try:
            with frozen_heap():
                from .serve import serve
        except ModuleNotFoundError as error:
            raise UnavailableError(f"{error}: install tensorkiln-server[farm].") from None
        return serve(settings)


if __name__ == "__main__":
    sys.exit(main())
