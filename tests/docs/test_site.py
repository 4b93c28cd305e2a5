"""`make docs` makes a site of the manual: every page of the index, links that lead somewhere, and a search."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.snippets import ROOT

SCRIPT = re.compile(r"<(?:script|link|img)[^>]*(?:src|href)=\"?(https?://[^\"\s>]+)")


def made(source: Path, to: Path) -> subprocess.CompletedProcess[str]:
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("material") is None:
        pytest.skip("MkDocs is not installed: the extra docs has it")
    command = [sys.executable, "-m", "mkdocs", "build", "--config-file", str(source), "--site-dir", str(to)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)


def test_the_site_has_every_page_of_the_manual_and_its_search_finds_them(tmp_path: Path) -> None:
    done = made(ROOT / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 0, done.stderr
    pages = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    for page in pages - {Path("index.md")}:
        assert (tmp_path / "site" / page.with_suffix("") / "index.html").is_file(), page
    index = json.loads((tmp_path / "site/search/search_index.json").read_text("utf-8"))
    assert {"tutorial/", "docker/", "changelog/"} <= {each["location"] for each in index["docs"]}
    start = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert SCRIPT.findall(start) == []


def test_a_link_that_leads_nowhere_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# One\n\n[two](two.md) [there](#nowhere)\n")
    config = (ROOT / "mkdocs.yml").read_text("utf-8").replace("hooks: [docs/.site/links.py]\n", "")
    (tmp_path / "mkdocs.yml").write_text(config)
    done = made(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 1
    assert "two.md" in done.stderr
    assert "nowhere" in done.stderr
