"""Targets: shorthands, objects, features."""

import subprocess
import sys

import pytest

from tensorkiln.errors import DeviceError, RequestError
from tensorkiln.target import LEVELS, Target, missing_features
from tensorkiln.usable_features import usable_features


@pytest.mark.parametrize("level", sorted(LEVELS))
def test_a_level_resolves_to_sorted_features(level: str) -> None:
    target = Target.parse(f"cpu:{level}")
    assert target.kind == "cpu"
    assert target.features == tuple(sorted(set(target.features)))
    assert target.triple is not None
    assert target.triple.endswith("-linux-gnu")


def test_every_level_of_x86_64_holds_the_one_below() -> None:
    low, middle, high = (set(Target.parse(f"cpu:x86-64-v{level}").features) for level in (2, 3, 4))
    assert low < middle < high
    assert "avx2" in middle - low
    assert "avx512f" in high - middle


def test_the_native_target_is_what_llvm_says_of_this_machine() -> None:
    binding = pytest.importorskip("llvmlite.binding")
    target = Target.parse("cpu:native")
    assert target.cpu == binding.get_host_cpu_name()
    assert missing_features(target, binding.get_host_cpu_features()) == ()


SMALL_STACK = """
import ctypes
from tensorkiln.usable_features import usable_features

class Stack(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))

memory = ctypes.create_string_buffer(2048)
assert ctypes.CDLL(None).sigaltstack(ctypes.byref(Stack(ctypes.addressof(memory), 0, 2048)), None) == 0
print(usable_features({"avx2": True, "amx-tile": True, "amx-int8": False}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="arch_prctl is a call of Linux")
def test_tile_registers_that_linux_refuses_are_not_usable() -> None:
    # Linux grants no registers that a signal stack is too small for; without them it knows no such request.
    made = subprocess.run([sys.executable, "-c", SMALL_STACK], capture_output=True, text=True, check=True)
    assert made.stdout.strip() == "{'avx2': True, 'amx-tile': False, 'amx-int8': False}"


def test_features_other_than_tile_registers_are_usable_as_reported() -> None:
    assert usable_features({"avx2": True, "amx-tile": False}) == {"avx2": True, "amx-tile": False}


def test_the_native_target_needs_llvmlite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    with pytest.raises(DeviceError, match="llvmlite"):
        Target.parse("cpu:native")


@pytest.mark.parametrize(
    ("machine", "triple"),
    [
        ("x86_64", "x86_64-unknown-linux-gnu"),
        ("aarch64", "aarch64-unknown-linux-gnu"),
        ("arm64", "aarch64-unknown-linux-gnu"),
    ],
)
def test_cpu_is_this_machines_architecture(monkeypatch: pytest.MonkeyPatch, machine: str, triple: str) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert Target.parse("cpu").triple == triple


def test_missing_features_are_named() -> None:
    host = {name: True for name in Target.parse("cpu:x86-64-v3").features} | {"avx512f": False}
    assert missing_features(Target.parse("cpu:x86-64-v3"), host) == ()
    assert missing_features(Target.parse("cpu:x86-64-v4"), host)[0] == "avx512bw"


@pytest.mark.parametrize("text", ["cpu", "cpu:native", "cpu:x86-64-v4", "cuda:sm_90a", "rocm:gfx942"])
def test_a_target_survives_json_with_the_fields_of_its_kind(text: str) -> None:
    target = Target.parse(text)
    wire = target.model_dump(mode="json")
    assert Target.parse(wire) == Target.model_validate_json(target.model_dump_json()) == target
    assert set(wire) == ({"kind", "triple", "cpu", "features"} if target.kind == "cpu" else {"kind", "arch"})


@pytest.mark.parametrize(("text", "key"), [("cpu:aarch64", "CPU"), ("cuda:sm_90", "CUDA"), ("rocm:gfx90a", "ROCM")])
def test_a_target_knows_its_device_kind(text: str, key: str) -> None:
    assert Target.parse(text).base_device_key == Target.parse(text).home_device == key


@pytest.mark.parametrize(
    "source",
    [
        "", "tpu", "cpu:", "cpu:x86-64-v1", "rocm", "cuda:", "cuda:gfx942", "rocm:sm_90", "cuda:sm_90;rm",
        {}, {"kind": "cpu"}, {"kind": "cuda"}, {"kind": "cuda", "arch": "sm_90", "cpu": "x"}, {"kind": "tpu"},
        {"kind": "cpu", "triple": "x86_64-unknown-linux-gnu", "cpu": "x86-64", "features": ["+avx"]},
        {"kind": "cpu", "triple": "x86_64-unknown-linux-gnu", "cpu": "x86-64", "tune": "znver5"},
    ],
    ids=str,
)  # fmt: skip
def test_anything_else_is_an_invalid_request(source: str | dict[str, object]) -> None:
    with pytest.raises(RequestError):
        Target.parse(source)


def test_features_are_sorted_and_named_once() -> None:
    target = Target(kind="cpu", triple="x86_64-unknown-linux-gnu", cpu="x86-64", features=("sse2", "avx", "avx"))
    assert target.features == ("avx", "sse2")
