"""The report as JUnit's XML: a suite per target, a case per graph."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree

from ..printable import as_unicode
from ..report import SAYS_NOTHING_OF_GRAPHS
from .result import Result

# Characters that XML 1.0 cannot represent (section 2.2).
_ILLEGAL: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(results: Sequence[Result]) -> str:
    """The document. Errors independent of the graph are `error`, others `failure`; what did not run is `skipped`."""
    root = ElementTree.Element("testsuites", name="kiln compile-all")
    for target in dict.fromkeys(each.target for each in results):
        suite = ElementTree.SubElement(root, "testsuite", name=target)
        cases = [each for each in results if each.target == target]
        kinds = [_case(suite, each) for each in cases]
        seconds = sum(each.outcome.seconds for each in cases if each.outcome is not None)
        counts = {f"{kind}s" if kind != "skipped" else kind: kinds.count(kind) for kind in _KINDS}
        for name, value in {"tests": len(cases), **counts, "time": f"{seconds:.3f}"}.items():
            suite.set(name, str(value))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


_KINDS: Final = ("failure", "error", "skipped")


def _case(suite: ElementTree.Element, result: Result) -> str | None:
    seconds = result.outcome.seconds if result.outcome is not None else 0.0
    case = ElementTree.SubElement(
        suite, "testcase", name=_legal(result.file.name), classname=result.target, time=f"{seconds:.3f}"
    )
    case.set("file", _legal(as_unicode(result.file.path.as_posix())))
    if result.outcome is None:
        ElementTree.SubElement(case, "skipped", message="the run ended before")
        return "skipped"
    if result.miss is not None:
        ElementTree.SubElement(case, "skipped", message=_legal(f"not in the cache: {result.miss.reason}"))
        return "skipped"
    warnings = result.warnings()
    if warnings:
        ElementTree.SubElement(case, "system-out").text = _legal("\n".join(warnings))
    error = result.error
    if error is None:
        return None
    kind = "error" if isinstance(error, SAYS_NOTHING_OF_GRAPHS) else "failure"
    told = ElementTree.SubElement(case, kind, type=error.code, message=_legal(error.message))
    lines = [str(error), *(f"{name}: {value}" for name, value in sorted(error.details.items()))]
    told.text = _legal("\n".join(lines))
    return kind


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)
