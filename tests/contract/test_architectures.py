"""CUDA architectures: which are known, which devices run their code, and that no other is a target."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tensorkiln.architectures import (
    ARCHITECTURES,
    KIB,
    MAX_BLOCK,
    MAX_GRID,
    MAX_THREADS_PER_BLOCK,
    STATIC_SHARED_BYTES,
    Scope,
)
from tensorkiln.errors import RequestError
from tensorkiln.target import Target


def test_the_oldest_is_volta() -> None:
    assert next(iter(ARCHITECTURES)) == "sm_70"
    assert min(architecture.capability for architecture in ARCHITECTURES.values()) == (7, 0)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_an_architecture_is_a_target_by_its_name(name: str) -> None:
    target = Target.parse(f"cuda:{name}")
    assert target.arch == name == ARCHITECTURES[name].name
    assert Target.parse({"kind": "cuda", "arch": name}) == target


@pytest.mark.parametrize("name", ["sm_60", "sm_7", "sm_70a", "sm_88", "sm_90f", "sm_999", "sm_90b", "sm_"])
def test_another_name_is_refused_with_those_that_are_known(name: str) -> None:
    for source in (f"cuda:{name}", {"kind": "cuda", "arch": name}):
        with pytest.raises(RequestError, match=rf"{name}.*known are sm_70, .*sm_121a") as caught:
            Target.parse(source)
        assert caught.value.pointers == ("/target",)
    with pytest.raises(ValidationError, match="known are"):
        Target(kind="cuda", arch=name)


def test_a_rocm_arch_is_not_looked_up_among_those_of_cuda() -> None:
    assert Target.parse("rocm:gfx942").arch == "gfx942"


@pytest.mark.parametrize(
    ("name", "devices", "others"),
    [
        ("sm_70", [(7, 0), (7, 5), (9, 0), (12, 1)], [(6, 1)]),
        ("sm_86", [(8, 6), (8, 9), (10, 0)], [(8, 0), (7, 5)]),
        ("sm_90", [(9, 0), (10, 0), (12, 0)], [(8, 9)]),
        ("sm_90a", [(9, 0)], [(8, 9), (10, 0)]),
        ("sm_100", [(10, 0), (10, 1), (10, 3), (11, 0), (12, 0)], [(9, 0)]),
        ("sm_100a", [(10, 0)], [(10, 1), (10, 3), (11, 0)]),
        ("sm_100f", [(10, 0), (10, 3)], [(10, 1), (11, 0), (12, 0), (9, 0)]),
        ("sm_103f", [(10, 3)], [(10, 0), (11, 0)]),
        ("sm_101", [(10, 1), (11, 0), (12, 0)], [(10, 3), (10, 0)]),
        ("sm_101a", [(10, 1), (11, 0)], [(10, 3), (12, 0)]),
        ("sm_110a", [(10, 1), (11, 0)], [(10, 3), (12, 0)]),
        ("sm_120f", [(12, 0), (12, 1)], [(11, 0)]),
        ("sm_121f", [(12, 1)], [(12, 0)]),
    ],
)
def test_code_runs_on_the_devices_that_its_suffix_says(
    name: str, devices: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    architecture = ARCHITECTURES[name]
    assert [device for device in devices if not architecture.runs_on(device)] == []
    assert [device for device in others if architecture.runs_on(device)] == []


def test_only_names_without_suffix_are_forward_compatible() -> None:
    assert {name for name, one in ARCHITECTURES.items() if one.is_forward_compatible} == {
        name for name in ARCHITECTURES if name[-1].isdigit()
    }
    assert {one.scope for name, one in ARCHITECTURES.items() if name.endswith("a")} == {Scope.EXACT}
    assert {one.scope for name, one in ARCHITECTURES.items() if name.endswith("f")} == {Scope.FAMILY}


def test_every_block_can_opt_in_to_more_shared_memory_than_its_code_may_have() -> None:
    sizes = {name: architecture.shared_bytes for name, architecture in ARCHITECTURES.items()}
    assert all(size > STATIC_SHARED_BYTES for size in sizes.values())
    assert (sizes["sm_70"], sizes["sm_75"], sizes["sm_80"]) == (96 * KIB, 64 * KIB, 163 * KIB)
    # As devices report them: cudaDevAttrMaxSharedMemoryPerBlockOptin.
    assert (sizes["sm_90"], sizes["sm_120"]) == (232_448, 101_376)


def test_a_launch_is_bounded_in_every_direction() -> None:
    assert (MAX_GRID[0], MAX_GRID[1:]) == (2_147_483_647, (65_535, 65_535))
    assert MAX_BLOCK[0] == MAX_THREADS_PER_BLOCK == 1024
