"""A program is for the instructions that it has; how it was tuned does not matter to where it runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from llvmlite import binding

from tensorkiln import Client, Graph
from tensorkiln.errors import DeviceError
from tensorkiln.target import Target, missing_features
from tests.service.server import Server

X = np.arange(8, dtype=np.float32).reshape(4, 2)
NATIVE = Target.parse("cpu:native")
HOST: dict[str, bool] = dict(binding.get_host_cpu_features())
# Names that LLVM knows; no processor has all of them.
RARE = ["fma4", "xop", "tbm", "lwp", "sha512", "amx-tile", "avx512f", "avx10.2"]

pytestmark = pytest.mark.skipif("x86_64" not in str(NATIVE.triple), reason="the names are those of x86-64")


def test_missing_features_are_named(server: Server, small: Graph, tmp_path: Path) -> None:
    foreign = next(name for name in RARE if not HOST.get(name, False))
    target = NATIVE.model_copy(update={"features": tuple(sorted({*NATIVE.features, foreign}))})
    with Client(server.url, cache_dir=tmp_path) as client:
        with pytest.raises(DeviceError, match=f"lacks {foreign}") as refused:
            client.compile(small, target)
        assert refused.value.details == {"missing_features": [foreign]}
        (compiled,) = client.compile_for(small, [target])
        with pytest.raises(DeviceError, match=foreign):
            client.load(compiled)


@pytest.mark.parametrize("tuned_for", ["skylake", "znver3", "x86-64"])
def test_code_tuned_for_another_processor_runs(server: Server, small: Graph, tmp_path: Path, tuned_for: str) -> None:
    features = (*Target.parse("cpu:x86-64-v2").features, "prefer-256-bit", "slow-3ops-lea", "fast-gather")
    target = Target.parse({"kind": "cpu", "triple": NATIVE.triple, "cpu": tuned_for, "features": features})
    with Client(server.url, cache_dir=tmp_path) as client:
        np.testing.assert_array_equal(client.compile(small, target)(X, n=2)[1], -X)


def test_tuning_flags_are_never_missing_and_features_always_are() -> None:
    target = NATIVE.model_copy(update={"features": ("avx512f", "fast-shld-rotate", "prefer-128-bit", "sse2")})
    assert missing_features(target, {}) == ("avx512f", "sse2")
    assert missing_features(target, {"sse2": True, "avx512f": False}) == ("avx512f",)
    assert missing_features(NATIVE, HOST) == ()


def test_a_levels_features_are_instructions_alone() -> None:
    for level in ("cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64", "cpu:native"):
        features = Target.parse(level).features
        assert features
        assert missing_features(Target.parse(level), {}) == features
