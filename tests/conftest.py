"""What all tests share: hypothesis profiles, and room for the recursion of the tracer."""

from __future__ import annotations

import os
import sys

from hypothesis import HealthCheck, settings

# The compiler raises the limit when it runs; hypothesis warns of a limit that changes under a test.
sys.setrecursionlimit(20_000)

settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("dev", parent=settings.get_profile("ci"), derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
