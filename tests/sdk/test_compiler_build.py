"""The digest of the compiler changes with whatever changes a byte that it makes."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import pytest

from tensorkiln import compiler_build
from tensorkiln.compiler_build import PARTS, build


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("other", ["0.0.1", None])
def test_another_version_of_a_part_is_another_build(
    part: str, other: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(distribution: str) -> str:
        if distribution != part:
            return version(distribution)
        if other is None:
            raise PackageNotFoundError(distribution)
        return other

    here = build.__wrapped__()
    monkeypatch.setattr(compiler_build, "version", elsewhere)
    there = build.__wrapped__()
    assert there.versions[part] == other or (other is None and there.versions[part] == "absent")
    assert (there.build_id == here.build_id) == (there.versions == here.versions)
    assert there.versions != here.versions or here.versions[part] == "absent"


def test_the_assembler_is_a_part() -> None:
    assert "nvidia-nvjitlink" in build().versions
