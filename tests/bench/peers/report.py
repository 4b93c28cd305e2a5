"""A record as Markdown: ratios by setting, times by peer, compile latency, cold start, and missing peers."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from tests.bench.peers.peers import BY_NAME, PEERS
from tests.bench.peers.record import Problem, Record, geometric_mean, ratio
from tests.bench.peers.workloads import BY_NAME as ROWS

BEGIN: Final = "<!-- written by `make bench-peers`: begin -->"
END: Final = "<!-- written by `make bench-peers`: end -->"

Shape = tuple[int, str, str]
"""Cores, memory setting, and alignment of inputs."""

BUSY: Final = 0.5
"""A load average above this is reported as a busy machine."""

PLACES: Final = {"aligned": "aligned", "numpy": "as NumPy has them"}
SMALL: Final = "O1"
"""The row that measures the overhead of a call."""


def replaced(page: str, text: str) -> str:
    """The page with the text between its markers. ValueError for a page without them."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page has no lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{text.strip()}\n\n{END}{after}"


def report(record: Record, plot: Path | None = None) -> str:
    """All sections that the record has figures for."""
    parts = [_about(record)]
    if plot is not None:
        parts.append(f"![Times of each peer by ours]({plot.name})")
    shapes = _shapes(record, "row")
    if shapes:
        parts.append(f"### The best peer's time by ours\n\n{_ratios(record, shapes)}")
    for shape in _shown(shapes):
        parts.append(f"### Rows, {_said(shape)}: milliseconds\n\n{_times(record, 'row', shape)}")
    for kind, title in (("network", "Networks"), ("model", "Models")):
        for shape in _shapes(record, kind):
            parts.append(f"### {title}, {_said(shape)}: milliseconds\n\n{_times(record, kind, shape)}")
    parts += [_latency(record), _problems(record)]
    return "\n\n".join(part for part in parts if part)


def _about(record: Record) -> str:
    machine = ", ".join(f"{name}: {value}" for name, value in record.machine.items())
    versions = {BY_NAME[name].title: version for name, version in record.versions.items()}
    named = ", ".join(f"{title} {version}" for title, version in versions.items() if "," not in title)
    busy = float(record.machine.get("load before", "0")) > BUSY
    remark = " Other programs ran beside it, so that the figures are provisional." if busy else ""
    return f"Measured on: {machine}.{remark}\n\nVersions: {named}."


def _shapes(record: Record, kind: str) -> list[Shape]:
    cases = set(record.of_kind(kind))
    return sorted({(each.cores, each.memory, each.place) for each in record.times if each.case in cases})


def _shown(shapes: Sequence[Shape]) -> list[Shape]:
    """For each number of cores, the setting with the least overhead beside kernels, and the default setting."""
    by_cores = {cores: [shape for shape in shapes if shape[0] == cores] for cores, _, _ in shapes}
    wanted = (("warm", "aligned"), ("default", "numpy"))
    found = [[shape for shape in alike if shape[1:] in wanted] or alike[:1] for alike in by_cores.values()]
    return [shape for alike in found for shape in sorted(alike, reverse=True)]


def _said(shape: Shape) -> str:
    cores, memory, place = shape
    inputs = "inputs aligned to 64 bytes" if place == "aligned" else "inputs as NumPy has them"
    return f"{'one core' if cores == 1 else f'{cores} cores'}, {memory} memory, {inputs}"


def _ratios(record: Record, shapes: Sequence[Shape]) -> str:
    header = ["row", "what", *(f"{cores} {memory} {PLACES[place]}" for cores, memory, place in shapes)]
    cases = record.of_kind("row")
    lines: list[list[str]] = []
    columns: list[list[float | None]] = []
    for shape in shapes:
        columns.append([ratio(record.us(case, *shape)) for case in cases])
    for number, case in enumerate(cases):
        lines.append([case, ROWS[case].meaning, *(_ratio(column[number]) for column in columns)])
    lines.append(["", "**geometric mean**", *(f"**{_ratio(geometric_mean(column))}**" for column in columns)])
    if SMALL in cases:
        place = cases.index(SMALL)
        others = [geometric_mean(column[:place] + column[place + 1 :]) for column in columns]
        lines.append(["", f"without {SMALL}", *map(_ratio, others)])
    return _table(header, lines, left=2)


def _times(record: Record, kind: str, shape: Shape) -> str:
    cases = record.of_kind(kind)
    us = {case: record.us(case, *shape) for case in cases}
    peers = [peer for peer in PEERS if any(peer.name in taken for taken in us.values())]
    has_bound = any(peer.has_weights for peer in peers)
    lines: list[list[str]] = []
    for case, taken in us.items():
        best = min(taken.values(), default=0.0)
        cells = [_cell(taken.get(peer.name), best) for peer in peers]
        ratios = [ratio(taken), ratio(taken, has_weights=True)] if has_bound else [ratio(taken)]
        lines.append([case, *cells, *map(_ratio, ratios)])
    means = [geometric_mean(ratio(taken) for taken in us.values())]
    if has_bound:
        means.append(geometric_mean(ratio(taken, has_weights=True) for taken in us.values()))
    lines.append(["**geometric mean**", *[""] * len(peers), *(f"**{_ratio(mean)}**" for mean in means)])
    names = ["best/ours", *(["bound: best/ours"] if has_bound else [])]
    return _table([kind, *(peer.title for peer in peers), *names], lines)


def _latency(record: Record) -> str:
    kinds = [kind for kind in ("row", "network", "model") if record.of_kind(kind)]
    fewest = min((each.cores for each in record.compiled), default=1)
    columns = [record.compile_ms(fewest, record.of_kind(kind)) for kind in kinds]
    for is_kept in (False, True):
        columns.append(
            {each.peer: statistics.median(each.rounds_ms) for each in record.started if each.is_kept == is_kept}
        )
    lines = [
        [peer.title, *(f"{column[peer.name]:.0f}" if peer.name in column else "" for column in columns)]
        for peer in PEERS
        if any(peer.name in column for column in columns)
    ]
    if not lines:
        return ""
    header = ["peer", *(f"compile, {kind}s" for kind in kinds), "cold start", "cold start, caches kept"]
    return f"### Compile latency and cold start: milliseconds\n\n{_table(header, lines)}"


def _problems(record: Record) -> str:
    if not record.problems:
        return ""
    order = [peer.name for peer in PEERS]
    by_reason: dict[tuple[int, str], list[Problem]] = {}
    for problem in record.problems:
        by_reason.setdefault((order.index(problem.peer), problem.reason), []).append(problem)
    lines: list[list[str]] = []
    for (place, why), alike in sorted(by_reason.items()):
        cases = list(dict.fromkeys(problem.case for problem in alike))
        cores = sorted({str(problem.cores) for problem in alike if problem.cores})
        where = "everything" if "" in cases else _cases(record, cases)
        lines.append([PEERS[place].title, where, ", ".join(cores), why])
    return f"### Missing or wrong\n\n{_table(['peer', 'where', 'cores', 'why'], lines, left=4)}"


def _cases(record: Record, cases: Sequence[str]) -> str:
    """The names of cases, or `every <kind>` for all cases of a kind."""
    names: list[str] = []
    rest = set(cases)
    for kind in ("row", "network", "model"):
        all_of_it = record.of_kind(kind)
        if len(all_of_it) > 1 and rest.issuperset(all_of_it):
            names.append(f"every {kind}")
            rest -= set(all_of_it)
    return ", ".join([*names, *(case for case in cases if case in rest)])


def _cell(us: float | None, best: float) -> str:
    if us is None:
        return ""
    return f"**{milliseconds(us)}**" if us == best else milliseconds(us)


def milliseconds(us: float) -> str:
    """Milliseconds with three significant digits."""
    ms = us / 1e3
    digits = next((digits for digits, least in ((0, 100), (1, 10), (2, 1), (3, 0.1), (4, 0.01)) if ms >= least), 5)
    return f"{ms:.{digits}f}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _table(header: Sequence[str], lines: Iterable[Sequence[str]], left: int = 1) -> str:
    rule = ["---" if number < left else "---:" for number in range(len(header))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *lines))
