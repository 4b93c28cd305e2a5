"""`python -m tests.farm.failing_worker`: a worker whose compiler fails as graphs say."""

from __future__ import annotations

import sys

from service.sandbox.spawn import Spawned
from service.worker.__main__ import main
from tests.service.failing import INSTALL

if __name__ == "__main__":
    Spawned.besides = (INSTALL,)
    sys.exit(main())
