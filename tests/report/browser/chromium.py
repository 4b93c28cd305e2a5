"""A headless Chromium, and pages in it that may not say a word on their console."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

Page: TypeAlias = Any
"""A page of playwright, which is no dependency: its types are unknown where it is not installed."""

ARGUMENTS = ("--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking")
PATIENCE_MS = 60_000


@contextmanager
def chromium() -> Generator[Any]:
    """A browser. The test is skipped where Chromium or playwright is not installed, unless it is required."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    required = os.environ.get("KILN_REQUIRE_CHROMIUM") == "1"
    if path is None:
        assert not required, "Chromium is not installed"
        pytest.skip("Chromium is not installed")
    if required:
        import playwright.sync_api as playwright  # pyright: ignore[reportMissingImports]
    else:
        playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Any, html: bytes | str, folder: Path, *, dark: bool = False) -> Generator[Page]:
    """The page from a file, when its table of kernels is there. Whatever it says on its console fails the test."""
    file = folder / "report.html"
    file.write_bytes(html if isinstance(html, bytes) else html.encode())
    said: list[str] = []
    asked: list[str] = []
    page = browser.new_page(
        viewport={"width": 1500, "height": 950}, color_scheme="dark" if dark else "light", offline=True
    )
    page.set_default_timeout(PATIENCE_MS)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    try:
        page.goto(file.as_uri())
        page.wait_for_selector(".kernel-row[data-item]")
        yield page
        assert said == []
        assert [url for url in asked if url != file.as_uri() and not url.startswith("data:")] == []
    finally:
        page.close()


def becomes(look: Callable[[], Any], expected: Any) -> None:
    """Waits until what is looked at is as expected: a page shows what was done to it a moment later."""
    end = time.monotonic() + PATIENCE_MS / 1000
    while (seen := look()) != expected and time.monotonic() < end:
        time.sleep(0.02)
    assert seen == expected
