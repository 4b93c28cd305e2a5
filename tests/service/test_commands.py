"""The commands beside the service itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.service.forked import forked_services


@pytest.mark.parametrize("module", ["service.trust", "service.identity"])
def test_a_setting_that_cannot_be_is_told_in_a_line(module: str) -> None:
    done = forked_services().run(module, "list", cwd=Path.cwd(), env={**os.environ, "KILN_QUEUE": "many"})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("KILN_QUEUE: ")
    assert len(done.stderr.splitlines()) == 1
