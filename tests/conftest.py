"""What all tests share: hypothesis profiles, and room for the recursion of the tracer."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile

from hypothesis import HealthCheck, settings

# The compiler raises the limit when it runs; hypothesis warns of a limit that changes under a test.
sys.setrecursionlimit(20_000)

# No test may leave a key that it trusted, or a program that it kept, with the user who runs it.
_OWN = tempfile.mkdtemp(prefix="kiln-tests-")
atexit.register(shutil.rmtree, _OWN, ignore_errors=True)
os.environ.setdefault("KILN_CONFIG_DIR", os.path.join(_OWN, "config"))
os.environ.setdefault("KILN_CACHE_DIR", os.path.join(_OWN, "cache"))

settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("dev", parent=settings.get_profile("ci"), derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
