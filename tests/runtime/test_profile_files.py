from __future__ import annotations

import json
import math
import pickle
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tensorkiln.errors import RequestError
from tensorkiln.expr import symbol
from tensorkiln.launch import LaunchDims
from tensorkiln.runtime.item_profile import ItemProfile, Span
from tensorkiln.runtime.machine import Machine, measured
from tensorkiln.runtime.profile import Profile
from tensorkiln.runtime.roofline import roofline
from tensorkiln.schedule import ItemAnalysis
from tests.runtime.kernels import DOUBLE
from tests.runtime.sketch import Sketch
from tests.runtime.test_items import sort_item, transfer

N = symbol("n")
EVIL = "<script>&x"


@pytest.fixture
def profile() -> Profile:
    sketch = Sketch(symbols={"n": (1, 1 << 20)})
    x, doubled, ordered = sketch.buffer([N], "input"), sketch.buffer([N]), sketch.buffer([N])
    sketch.elementwise(DOUBLE, "double_it", [x, doubled])
    sketch.operations.append(sort_item(doubled, ordered))
    sketch.operations.append(transfer(ordered, sketch.buffer([N], "output")))
    sketch.analysis = [ItemAnalysis(item_id=item, est_ns=1 << 30) for item in range(3)]
    program, values = sketch.program(threads=2), np.ones(1 << 19, np.float32)
    # A kernel of less than a millisecond may be done before the other thread has begun.
    while len((taken := program.profile(values, n=len(values)))[0].spans) < 2:
        pass
    return taken


def test_a_trace_has_the_items_and_the_threads_that_ran_them(profile: Profile, tmp_path: Path) -> None:
    profile.save(tmp_path / "x.json")
    events = json.loads((tmp_path / "x.json").read_text())["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert names[0] == "items"
    assert set(names.values()) <= {"items", "thread 0", "thread 1"}
    ran = [event for event in events if event["ph"] == "X"]
    items = [event for event in ran if event["tid"] == 0]
    assert [(event["name"], event["cat"]) for event in items] == [
        ("double_it", "kernel"),
        ("sort", "callback"),
        ("transfer_0", "transfer"),
    ]
    assert items[0]["ts"] == 0
    assert [event["ts"] for event in items] == sorted(event["ts"] for event in items)
    for event in ran:
        whole = items[event["args"]["item"]]
        assert whole["ts"] <= event["ts"]
        assert event["ts"] + event["dur"] <= whole["ts"] + whole["dur"] + 1e-6
    shares = [event for event in ran if event["tid"] > 0 and event["cat"] == "kernel"]
    assert len(shares) == items[0]["args"]["threads"] == 2


def test_a_profile_is_a_tuple_of_items(profile: Profile) -> None:
    assert isinstance(profile, tuple)
    assert profile.ns == sum(item.ns for item in profile)
    again = pickle.loads(pickle.dumps(profile))
    assert again == profile
    assert (again.title, again.threads) == (profile.title, profile.threads)


def test_another_suffix_is_refused(profile: Profile, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"as \.json, a trace, or as \.svg, a roofline, not as '\.html'"):
        profile.save(tmp_path / "x.html")
    assert not list(tmp_path.iterdir())


def made(*, is_gpu: bool = False) -> Profile:
    launch = LaunchDims((4, 1, 1), (32, 1, 1))
    fast = ItemProfile(0, "kernel", EVIL, 1000, launch, 1, 900, 0, (Span(0, 0, 1000),), flops=80_000, bytes=10_000)
    slow = ItemProfile(1, "kernel", "slow", 5000, launch, 1, flops=1_000, bytes=10_000)
    copied = ItemProfile(2, "memory_transfer", "copy", 10, None, 1)
    return Profile([fast, slow, copied], EVIL, is_gpu=is_gpu)


def test_a_roofline_has_a_point_for_each_item_at_its_place() -> None:
    figure = roofline(EVIL, made(), Machine(gb_per_s=20.0, gflop_per_s=200.0))
    root = ElementTree.fromstring(figure)
    space = "{http://www.w3.org/2000/svg}"
    points = root.findall(f"{space}circle")
    assert [point.findtext(f"{space}title", "").split(":")[0] for point in points] == [EVIL, "slow"]
    # Decades on both axes: 8 operations per byte at 80 GFLOP/s, and 0.1 at 0.2.
    (x0, y0), (x1, y1) = ((float(point.get("cx", "")), float(point.get("cy", ""))) for point in points)
    across, down = 630 / 2, 350 / 4
    assert x0 - x1 == pytest.approx(across * (math.log10(8) - math.log10(0.1)), abs=0.2)
    assert y1 - y0 == pytest.approx(down * (math.log10(80) - math.log10(0.2)), abs=0.2)
    assert "<script>" not in figure
    assert "20 GB/s, 200 GFLOP/s" in figure


def test_a_gpu_has_streams_and_no_roof_where_its_peak_is_unknown(tmp_path: Path) -> None:
    made(is_gpu=True).save(tmp_path / "x.svg")
    made(is_gpu=True).save(tmp_path / "x.json")
    assert "polyline" not in (tmp_path / "x.svg").read_text()
    assert "stream 0" in (tmp_path / "x.json").read_text()


def test_a_profile_of_nothing_is_a_figure_without_points() -> None:
    assert "circle" not in roofline(EVIL, Profile(), None)


def test_a_machine_is_measured_once() -> None:
    found = measured(1)
    assert found is measured(1)
    assert found.gb_per_s > 0 < found.gflop_per_s
    assert Machine(10.0, 100.0).least_ns(flops=1000, moved=50) == 10
    assert Machine(10.0, 100.0).least_ns(flops=1000, moved=500) == 50
