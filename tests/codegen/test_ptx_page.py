"""The page on PTX lists the architectures as they are."""

from __future__ import annotations

import re

from tensorkiln.architectures import ARCHITECTURES, KIB, MAX_GRID, MAX_THREADS_PER_BLOCK, STATIC_SHARED_BYTES
from tests.snippets import ROOT

PAGE = (ROOT / "docs" / "ptx.md").read_text("utf-8")


def test_the_table_of_architectures_is_the_code() -> None:
    rows = re.findall(r"^\| `(sm_\w+)` \| (\d+)\.(\d+) \| (\d+)\.(\d+) \| (\d+) \| (\w+) \|$", PAGE, re.MULTILINE)
    stated = {
        name: ((int(major), int(minor)), int(ptx_major + ptx_minor), int(kib) * KIB, scope)
        for name, major, minor, ptx_major, ptx_minor, kib, scope in rows
    }
    assert stated == {
        name: (one.capability, one.ptx, one.shared_bytes, one.scope) for name, one in ARCHITECTURES.items()
    }


def test_the_limits_of_a_launch_are_the_code() -> None:
    for number in (STATIC_SHARED_BYTES // KIB, MAX_THREADS_PER_BLOCK, *MAX_GRID):
        assert re.search(rf"\b{number}\b", PAGE)
