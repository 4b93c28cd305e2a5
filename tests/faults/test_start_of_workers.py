"""A worker that could not work says why and ends; it takes no orders."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.test_commands import run


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("KILN_REQUIRE_ISOLATION", "external", "external"),
        ("KILN_KEYS", "file/keys", "There can be no keys"),
        ("KILN_STORE", "file/store", "store"),
    ],
)
def test_a_worker_that_could_not_work_ends_before_it_looks_for_orders(
    tmp_path: Path, variable: str, value: str, reason: str
) -> None:
    (tmp_path / "file").touch()
    stated = value if variable == "KILN_REQUIRE_ISOLATION" else str(tmp_path / value)
    done = run("service.worker", home=tmp_path, **{variable: stated})
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "The worker cannot start: " in done.stderr
    assert reason in done.stderr.splitlines()[-1]
