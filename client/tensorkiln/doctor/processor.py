"""Check of the CPU: the target levels that it supports, and the missing features of others."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import DeviceError
from ..target import LEVELS, Target, missing_features
from .finding import Finding, fail, ok, warn

_NAMED = 4


def look() -> Iterator[Finding]:
    """Check the levels of `cpu:…`, and the default `cpu`."""
    try:
        native = Target.parse("cpu:native")
    except DeviceError as error:
        yield warn("cpu", "it is not known what this CPU has", f"{error.message}")
        return
    has = dict.fromkeys(native.features, True)
    architecture = (native.triple or "").partition("-")[0]
    runs: list[str] = []
    for level, (triple, _, _) in LEVELS.items():
        if triple.partition("-")[0] != architecture:
            continue
        missing = missing_features(Target.parse(f"cpu:{level}"), has)
        if missing:
            lacking = ", ".join(missing[:_NAMED]) + (" and more" if len(missing) > _NAMED else "")
            yield ok("cpu", f"does not run cpu:{level} (lacks {lacking})")
        else:
            runs.append(f"cpu:{level}")
    yield ok("cpu", f"{native.cpu}, runs {', '.join(('cpu:native', *runs))}")
    missing = missing_features(Target.parse("cpu"), has)
    if missing:
        lacking = ", ".join(missing[:_NAMED])
        yield fail("cpu", f"does not run the target cpu (lacks {lacking})", "compile for cpu:native on this machine")
