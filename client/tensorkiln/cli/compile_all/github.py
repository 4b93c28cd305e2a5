"""Output for GitHub: annotations in the log, and a table on the page of the job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .escape import escaped
from .result import Result, counts
from .verdict import Verdict


def workflow_commands(results: Sequence[Result]) -> Iterator[str]:
    """The annotations, one per line; equal ones for several targets of a graph are merged."""
    said: dict[tuple[str, str, str, str], list[str]] = {}
    for each in results:
        where = f"file={_property(each.file.path.as_posix())}"
        if each.error is not None:
            said.setdefault(("error", where, f"{each.error.code} for ", str(each.error)), []).append(each.target)
        for warning in each.warnings():
            said.setdefault(("warning", where, "", warning), []).append(each.target)
    for (kind, where, title, message), targets in said.items():
        yield f"::{kind} {where},title={_property(title + ', '.join(targets))}::{_message(message)}"


def summary(results: Sequence[Result], verdict: Verdict) -> str:
    """A Markdown page: cache statistics, violated policies, and a row for every graph and target."""
    known = [each.cache for each in results if each.cache is not None]
    hits = sum(cache.status == "hit" for cache in known)
    harmed = [cache for cache in known if "damaged" in cache.reason or "missing" in cache.reason]
    lines = [
        "## kiln compile-all",
        "",
        ", ".join(f"{count} {status}" for status, count in counts(results).items() if count or status == "ok"),
        "",
        f"Cache: {hits} hits of {len(known)}" + (f" ({hits / len(known):.0%})" if known else ""),
        f"Cache healthy: {'no' if harmed else 'yes'}",
        "",
        *(f"- {_cell(escaped(violation))}" for violation in verdict.violations),
        *([""] if verdict.violations else []),
        "| graph | target | result | cache | reason | queue ms | compile ms | bytes | growth |",
        "|---|---|---|---|---|---:|---:|---:|---:|",
        *(_row(each) for each in results),
        "",
    ]
    return "\n".join(lines)


def _row(result: Result) -> str:
    cache, outcome, made = result.cache, result.outcome, result.made
    told = f"{result.error.code}: {result.error.message}" if result.error is not None else result.status
    cells = [
        escaped(result.file.name),
        result.target,
        told,
        cache.status if cache else "",
        cache.reason if cache else "",
        _number(outcome.queue_ms if outcome else None),
        _number(outcome.run_ms if outcome else None),
        _number(made.bytes if made else None),
        "" if result.growth is None else f"{result.growth:+d}",
    ]
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}"


def _cell(text: str) -> str:
    """Text with table delimiters and markup escaped."""
    plain = escaped(" ".join(text.split()))[:300]
    for sign in "\\`*_[]<>|~#":
        plain = plain.replace(sign, f"\\{sign}")
    return plain


def _message(text: str) -> str:
    return escaped(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
