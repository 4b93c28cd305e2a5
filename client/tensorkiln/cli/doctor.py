"""`kiln doctor`: does everything work that compiles and runs need?"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from ..doctor import Finding, Status, examine
from .options import TimeoutS, Url
from .report import REFUSED, output, reported

_STYLES = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "red"}


def doctor(
    url: Url = None,
    timeout: TimeoutS = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check this machine and its connection to the service, and print remedies.

    The exit code is 1 if a check fails, and 0 otherwise, also with warnings.
    """
    findings: list[Finding] = []
    with reported() as step:
        for finding in examine(url, timeout):
            findings.append(finding)
            step(f"looked at {finding.part}")
    if as_json:
        typer.echo(json.dumps({"findings": [asdict(finding) for finding in findings], **_counts(findings)}, indent=2))
    else:
        _print(findings)
    if any(finding.status is Status.FAIL for finding in findings):
        raise typer.Exit(REFUSED)


def _counts(findings: list[Finding]) -> dict[str, int]:
    counted = Counter(finding.status for finding in findings)
    return {str(status): counted[status] for status in Status}


def _print(findings: list[Finding]) -> None:
    table = Table("part", "", "found", "what to do")
    for finding in findings:
        status = Text(finding.status, style=_STYLES[finding.status])
        table.add_row(finding.part, status, finding.found, finding.advice)
    console = output()
    console.print(table)
    console.print(", ".join(f"{count} {status}" for status, count in _counts(findings).items()))
