"""Reports in Chromium, that may not say a word on their console."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.chromium import PATIENCE_MS, Page


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
