"""The report of a comparison with peers: ratios, tables, markers, the plot, and merged runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.bench.peers import report
from tests.bench.peers.__main__ import parsed, write
from tests.bench.peers.plot import plot
from tests.bench.peers.process import reason
from tests.bench.peers.record import Problem, Record, Time, geometric_mean, ratio


def times(**us: float) -> Record:
    """A record of one row, on one core."""
    rounds = [Time("S1", peer.replace("_", "-"), 1, "warm", "aligned", (taken,)) for peer, taken in us.items()]
    return Record(kinds={"S1": "row"}, versions={"numpy": "2"}, times=rounds)


def test_a_ratio_is_of_the_best_peer_among_those_that_have_the_same() -> None:
    us = {"tensorkiln": 2.0, "numpy": 5.0, "jax": 3.0, "tensorkiln-bound": 1.0, "onnxruntime-constant": 0.5}
    assert ratio(us) == 1.5
    assert ratio(us, has_weights=True) == 0.5
    assert ratio({"tensorkiln": 2.0}) is None
    assert geometric_mean([2.0, None, 8.0]) == pytest.approx(4)
    assert geometric_mean([None]) is None


def test_a_run_is_added_to_another_by_case_and_setting() -> None:
    first, second = times(tensorkiln=2, numpy=5, jax=3), times(tensorkiln=1, numpy=4)
    first.times.append(replace(first.times[0], cores=2))
    gone = [Problem("S1", "numba", "gone", 1), Problem("", "numpy", "not installed")]
    kept = [Problem("T1", "numba", "there", 1), Problem("S1", "numba", "there", 2)]
    first.problems += [*gone, *kept]
    second.problems.append(Problem("S1", "torch", "new", 1))
    both = first.updated(second)
    assert both.us("S1", 1, "warm", "aligned") == {"tensorkiln": 1, "numpy": 4}
    assert both.us("S1", 2, "warm", "aligned") == {"tensorkiln": 2}
    assert both.problems == [*kept, Problem("S1", "torch", "new", 1)]
    second.machine["processor"] = "another"
    with pytest.raises(ValueError, match="the processor was None, and is another"):
        first.updated(second)


def test_the_report_shows_ratios_times_and_reasons() -> None:
    record = times(tensorkiln=2000, numpy=5000, jax=3000)
    record.problems += [
        *(Problem("S1", "numba", "no reason", cores) for cores in (2, 1)),
        Problem("", "torch", "not installed"),
    ]
    lines = report.report(record).splitlines()
    assert "| S1 | softmax of the rows of 4096x1024 | 1.50 |" in lines
    assert "| S1 | **2.00** | 5.00 | 3.00 | 1.50 |" in lines
    assert "| numba | S1 | 1, 2 | no reason |" in lines
    assert "| torch | everything |  | not installed |" in lines


def test_a_report_of_a_busy_machine_says_so() -> None:
    record = times(tensorkiln=1)
    said: list[bool] = []
    for load in ("0.1", "2.5"):
        record.machine["load before"] = load
        said.append("provisional" in report.report(record))
    assert said == [False, True]


def test_a_time_is_shown_with_three_digits() -> None:
    shown = {123_456: "123", 12_345: "12.3", 1_234: "1.23", 123.4: "0.123", 12.34: "0.0123", 0.5: "0.00050"}
    assert {us: report.milliseconds(us) for us in shown} == shown


def test_a_page_without_markers_is_left_alone(tmp_path: Path) -> None:
    page, figures = tmp_path / "page.md", tmp_path / "figures.json"
    page.write_text("text\n")
    with pytest.raises(ValueError, match="has no lines"):
        write(times(tensorkiln=1), page, figures, tmp_path / "picture.svg")
    assert not figures.exists()


def test_the_plot_has_a_dot_for_each_peer_farther_right_for_a_longer_time() -> None:
    drawn = ElementTree.fromstring(plot(times(tensorkiln=10, jax=20, numpy=5, torch=1e6, tensorkiln_bound=1)))
    dots = {
        (title.text or "").partition(",")[0]: float(circle.attrib["cx"])
        for circle in drawn.iter("{http://www.w3.org/2000/svg}circle")
        if (title := circle.find("{http://www.w3.org/2000/svg}title")) is not None
    }
    assert dots.keys() == {"JAX", "NumPy", "torch"}
    assert dots["NumPy"] < dots["JAX"] < dots["torch"] < float(drawn.attrib["width"])


def test_a_reason_is_one_line_without_folders_or_bars() -> None:
    assert reason("no file\n /usr/lib/x/libmkl.so | 5") == "no file libmkl.so / 5"
    assert len(reason("word " * 100)) < 200


def test_the_command_line_picks_rows_peers_and_settings() -> None:
    options = parsed(["--rows", "E1_1M,T1", "--peers", "numpy,jax", "--budget", "0.3", "--cores", "1"])
    assert [case.name for case in options.cases] == ["E1_1M", "T1"]
    assert [peer.name for peer in options.peers] == ["tensorkiln", "numpy", "jax"]
    assert (options.cores, options.budget.seconds, options.starts) == ((1,), 0.3, 0)
    everything = parsed([])
    counts = {kind: [case.kind for case in everything.cases].count(kind) for kind in ("row", "network", "model")}
    assert counts == {"row": 19, "network": 9, "model": 15}
    assert (everything.cores, everything.starts) == ((1, 2), 3)


def test_a_name_that_there_is_not_ends_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(["--rows", "E1_1M,none,Q7", "--peers", "mojo"])
    assert "not known: Q7, mojo" in capsys.readouterr().err
