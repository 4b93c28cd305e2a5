"""A headless Chromium, for the tests of pages."""

from __future__ import annotations

import importlib
import os
import shutil
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

import pytest

Page: TypeAlias = Any
"""A page of playwright, whose types are unknown where it is not installed."""

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
REQUIRED: Final = "KILN_REQUIRE_CHROMIUM"
"""Set to 1, the tests fail where there is no browser, and are not skipped."""
ARGUMENTS: Final = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
PATIENCE_MS: Final = 60_000


@contextmanager
def chromium() -> Generator[Any]:
    """That of this machine, else the one of `playwright install chromium`; the test is skipped where there is neither.

    While it is open, the thread has an event loop that runs: tests of other folders may need one of their own.
    """
    with _playwright().sync_playwright() as started:
        found = next(filter(None, map(shutil.which, NAMES)), started.chromium.executable_path)
        if not Path(found).is_file():
            _missing("there is no Chromium: `apt-get install chromium`, or `.venv/bin/playwright install chromium`")
        browser = started.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


def _playwright() -> Any:
    try:
        return importlib.import_module("playwright.sync_api")
    except ImportError:
        _missing("playwright is not installed: the extra dev has it")


def _missing(what: str) -> NoReturn:
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(what)
    pytest.skip(what)


def becomes(look: Callable[[], Any], expected: Any) -> None:
    """Waits until what is looked at is as expected: a page shows what was done to it a moment later."""
    end = time.monotonic() + PATIENCE_MS / 1000
    while (seen := look()) != expected and time.monotonic() < end:
        time.sleep(0.02)
    assert seen == expected
