"""The emulator's tests: skipped where it cannot run, and ended from outside when a kernel does not end."""

from __future__ import annotations

import pytest

from tests.distribution import FRESH

from .native import unsupported_host


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark this folder's tests. A signal would wait for the kernel to return, so the time limit is a thread's."""
    reason = unsupported_host()
    for item in items:
        if item.nodeid.startswith(FRESH):
            item.add_marker(pytest.mark.timeout(300, method="thread"))
            if reason:
                item.add_marker(pytest.mark.skip(reason=reason))
