"""What all tests share: hypothesis profiles, room for the recursion of the tracer, and the size of fault tests."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import sys
import tempfile

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer

from tests.distribution import Distribution
from tests.faults.size import FULL

# The compiler raises the limit when it runs; hypothesis warns of a limit that changes under a test.
sys.setrecursionlimit(20_000)

# One process for each processor is there already; threads of NumPy's own would wait for one another, and spin.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

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

_FULL_TIMEOUT_S = 3600

# A third of collecting seventeen thousand tests would be to search them for garbage.
gc.disable()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """A test that is a coroutine function runs in an event loop of its own, of asyncio."""
    return "asyncio"


def pytest_xdist_auto_num_workers() -> int:
    """One process more than processors: one of them waits for services and farms to come and go."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Distribution | None:
    """That of this suite, where tests are handed out by group."""
    return Distribution(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the folder of the fault tests as such, and at full size give every fault test the time that it takes."""
    for item in items:
        if item.nodeid.startswith("tests/faults/"):
            item.add_marker(pytest.mark.faults)
        if FULL and item.get_closest_marker("faults"):
            item.add_marker(pytest.mark.timeout(_FULL_TIMEOUT_S))


def pytest_collection_finish() -> None:
    """From now on there is garbage, if seldom; what was collected lasts as long as the process."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
