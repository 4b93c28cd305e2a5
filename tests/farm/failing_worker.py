"""`python -m tests.farm.failing_worker`: a worker whose compiler fails as graphs say."""

from __future__ import annotations

import sys

from service.sandbox import spawn
from service.worker.__main__ import main
from tests.service.failing import start_failing

if __name__ == "__main__":
    spawn.start = start_failing()
    sys.exit(main())
