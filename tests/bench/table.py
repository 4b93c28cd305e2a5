"""The measurements as one table of plain text."""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench.measure import Measurement

OTHERS = ("NumPy", "ONNX Runtime")


def table(measurements: Sequence[Measurement]) -> str:
    """Times in microseconds. A ratio above 1 means that tensorkiln is faster. Columns without times are omitted."""
    others = [name for name in OTHERS if any(name in entry.seconds for entry in measurements)]
    header = [
        "workload",
        "tensorkiln us",
        "estimate",
        *(column for name in others for column in (f"{name} us", "ratio")),
    ]
    lines = [[*header, "kernels", "compile ms"], *(_cells(entry, others) for entry in measurements)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(_aligned(line, widths) for line in lines)


def _cells(entry: Measurement, others: Sequence[str]) -> list[str]:
    ours = entry.seconds["tensorkiln"]
    cells = [entry.name, _microseconds(ours), _microseconds(entry.estimate_s)]
    for name in others:
        theirs = entry.seconds.get(name)
        cells += ["-", "-"] if theirs is None else [_microseconds(theirs), f"{theirs / ours:.2f}"]
    return [*cells, str(entry.kernels), f"{entry.compile_s * 1e3:.0f}"]


def _microseconds(seconds: float) -> str:
    microseconds = seconds * 1e6
    return f"{microseconds:.1f}" if microseconds < 100 else f"{microseconds:.0f}"


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = cells
    return "  ".join([first.ljust(widths[0]), *map(str.rjust, others, widths[1:])])
