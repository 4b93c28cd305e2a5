"""The peak of a GPU: by its clocks, as the compiler's own model has it, in a profile, a roofline and `kiln bench`."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from passes.gpu.machine import DEVICES
from tensorkiln.bundle import write_bundle
from tensorkiln.cli.app import app
from tensorkiln.program import Program
from tensorkiln.runtime.cuda import native
from tests.compiled import compiled
from tests.gpu.benches import BENCHES
from tests.simt.driver import HOPPER, EmulatedDriver

from .test_compiled import ARCH, codes

(TRIAD,) = (bench.case for bench in BENCHES if bench.case.name == "bench_triad")


def test_an_h100_moves_and_computes_what_its_data_sheet_says() -> None:
    peak = HOPPER.peak
    assert peak is not None
    assert peak.gb_per_s == pytest.approx(3350, rel=0.01)
    assert peak.gflop_per_s == pytest.approx(66_900, rel=0.01)


@pytest.mark.parametrize("name", sorted(DEVICES))
def test_the_compiler_counts_as_many_products_per_cycle(name: str) -> None:
    device, digits = DEVICES[name], name.removeprefix("sm_")
    capability = (int(digits[:-1]), int(digits[-1]))
    clocks = {"multiprocessors": device.multiprocessors, "clock_khz": round(device.gigahertz * 1e6)}
    peak = replace(HOPPER, capability=capability, **clocks).peak
    assert peak is not None
    assert peak.gflop_per_s == pytest.approx(2 * device.multiprocessors * device.lanes * device.gigahertz)


@pytest.mark.parametrize("field", ["multiprocessors", "clock_khz", "memory_khz", "memory_bits"])
def test_figures_missing_from_the_driver_are_not_guessed(field: str) -> None:
    assert replace(HOPPER, **{field: 0}).peak is None


def triad(driver: EmulatedDriver) -> Program:
    made = compiled(TRIAD.graph(), f"cuda:{ARCH}", texts=["translate"])
    driver.ir.update(codes(made))
    return Program(made.program, made.artifacts.__getitem__, device=driver)


def test_a_profile_has_the_peak_of_its_gpu_and_a_roof(tmp_path: Path) -> None:
    symbols = dict.fromkeys(TRIAD.calls[0], 3)
    profile = triad(EmulatedDriver({})).profile(*TRIAD.inputs(TRIAD.graph(), symbols, 0), **symbols)
    assert profile.peak == HOPPER.peak == pickle.loads(pickle.dumps(profile)).peak
    profile.save(tmp_path / "x.svg")
    assert "polyline" in (tmp_path / "x.svg").read_text()
    assert "3352 GB/s, 66908 GFLOP/s" in (tmp_path / "x.svg").read_text()


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    made = compiled(TRIAD.graph(), f"cuda:{ARCH}")
    write_bundle(tmp_path / "triad.kiln", made.program, made.artifacts.__getitem__)
    return tmp_path / "triad.kiln"


def bench(bundle: Path, driver: EmulatedDriver, monkeypatch: pytest.MonkeyPatch, *options: str) -> str:
    triad(driver)
    monkeypatch.setattr(native, "_opened", lambda _: driver)
    symbols = [part for name in TRIAD.calls[0] for part in ("--symbol", f"{name}=3")]
    done = CliRunner().invoke(app, ["bench", str(bundle), *symbols, "--repeat", "3", *options])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_bench_tells_the_share_of_the_gpu(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = json.loads(bench(bundle, EmulatedDriver({}), monkeypatch, "--json"))
    peak = HOPPER.peak
    assert peak is not None
    assert found["machine"] == {"gb_per_s": peak.gb_per_s, "gflop_per_s": peak.gflop_per_s}
    for item in [found["call"], *found["items"]]:
        least = peak.least_ns(item["flops"], item["bytes"])
        assert item["of_machine"] == pytest.approx(least / item["median_ns"])
    assert np.isclose(sum(item["bytes"] for item in found["items"]), found["call"]["bytes"])


def test_bench_says_which_peak_it_compares_with(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = bench(bundle, EmulatedDriver({}), monkeypatch)
    assert "the GPU, by its clocks: 3352 GB/s, 66908 GFLOP/s of float32" in shown
    unknown = bench(bundle, EmulatedDriver({}, properties=replace(HOPPER, memory_khz=0)), monkeypatch)
    assert "the driver of the GPU does not say how fast it is" in unknown
    assert "%" not in unknown
