"""`python -m service`: run the compile service."""

from __future__ import annotations

import argparse
import sys

from pydantic import ValidationError

from tensorkiln.errors import UnavailableError

from .serve import serve
from .settings import Settings


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m service", description="Run the tensorkiln compile service.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8080, help="port to listen on, 0 for any (default: %(default)s)")
    parser.add_argument("--uds", help="listen on this Unix socket instead")
    arguments = parser.parse_args()
    try:
        return serve(Settings(), arguments.host, arguments.port, arguments.uds)
    except ValidationError as error:
        for problem in error.errors(include_url=False):
            name = "_".join(str(step) for step in problem["loc"]).upper()
            print(f"KILN_{name}: {problem['msg']}", file=sys.stderr)
    except UnavailableError as error:
        print(error, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
