"""`python -m tensorkiln_server worker`: compile what the services of a farm ask for, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import sys

from service.observe.export import require_exporter
from service.observe.log import configure_log
from service.startup_errors import read_settings
from tensorkiln.errors import UnavailableError

from .serve import serve


def main() -> int:
    """The exit status."""
    settings = read_settings()
    if settings is None:
        return 1
    configure_log(settings.log)
    try:
        if settings.tracing:
            require_exporter()
        serve(settings)
    except UnavailableError as error:
        print(f"The worker cannot start: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
