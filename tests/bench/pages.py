"""`python -m tests.bench.pages`: how long reports take from opening to interactive, in headless Chromium.

A page is interactive when it has handled a click: the first kernel of its table is selected, and a frame that shows
this is drawn. The time starts with the navigation to a file on disk. Each page is opened five times.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from tensorkiln.report.page import page as page_of
from tests.chromium import REQUIRED, chromium
from tests.report.networks import bert, densenet, report_of, squeezenet
from tests.report.programs import long_chain, long_texts

ROUNDS: Final = 5
CPU: Final = "cpu:x86-64-v3"
PAGES: Final[Mapping[str, Callable[[], bytes]]] = {
    "squeezenet": lambda: report_of(squeezenet, CPU).html().encode(),
    "densenet121": lambda: report_of(densenet, CPU).html().encode(),
    "bert": lambda: report_of(bert, CPU).html().encode(),
    "bert for sm_90": lambda: report_of(bert, "cuda:sm_90").html().encode(),
    "10 000 nodes": lambda: page_of(long_chain(2500, 4)),
    "10 000 and texts": lambda: page_of(long_chain(2500, 4) | long_texts(10_000)),
}
_CLICK: Final = """
new MutationObserver((_, watch) => {
  const row = document.querySelector('.kernel-row[data-item]');
  if (row === null) return;
  if (row.getAttribute('aria-selected') !== 'true') {
    if (!window.clicked) row.click();
    window.clicked = true;
    return;
  }
  watch.disconnect();
  const done = () => { document.documentElement.dataset.interactive = performance.now(); };
  requestAnimationFrame(() => requestAnimationFrame(done));
}).observe(document, {subtree: true, childList: true, attributes: true});
"""


def opening_ms(browser: Any, file: Path) -> float:
    """Milliseconds from the start of the navigation until the page has handled a click."""
    page = browser.new_page(viewport={"width": 1500, "height": 950}, offline=True)
    try:
        page.add_init_script(_CLICK)
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-interactive]")
        return float(page.locator("html").get_attribute("data-interactive"))
    finally:
        page.close()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.pages", description="From opening to interactive.")
    parser.add_argument("--only", default="", help="only pages whose name contains this")
    only: str = parser.parse_args().only
    os.environ[REQUIRED] = "1"
    print(f"{'page':16} {'KiB':>6} {'median':>8} {'worst':>8}  ms, of {ROUNDS}")
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for name, make in PAGES.items():
            if only not in name:
                continue
            file = Path(folder, "report.html")
            file.write_bytes(make())
            taken = [opening_ms(browser, file) for _ in range(ROUNDS)]
            size = file.stat().st_size / 1024
            print(f"{name:16} {size:6.0f} {statistics.median(taken):8.0f} {max(taken):8.0f}", flush=True)


if __name__ == "__main__":
    main()
