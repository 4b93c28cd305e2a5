"""A warning for an API key that its service does not ask for: it may be wrong, and nothing would say so."""

from __future__ import annotations

import warnings
from types import FrameType
from typing import Final

IGNORED_HEADER: Final = "Kiln-Credential"
"""The header of an answer to a request whose credential the service did not look at, since it has no keys."""
IGNORED: Final = "ignored"


class IgnoredKeyWarning(UserWarning):
    """An API key or token was sent to a service that asks for none."""


def warn_of_ignored_key(url: str) -> None:
    """Warn, at the line of the caller that is outside of this package."""
    said = (
        f"the service at {url} has no keys, so it ignores the one that is sent, right or wrong: leave out api_key, "
        "or unset KILN_API_KEY; once the service has keys of its own, it asks for one"
    )
    warnings.warn(said, IgnoredKeyWarning, stacklevel=_frames_here())


def _frames_here() -> int:
    """How many frames from that of the warning on belong to this package: the first stack level outside of it."""
    from inspect import currentframe

    frame: FrameType | None = currentframe()
    frame = frame and frame.f_back
    own, level = __name__.partition(".")[0], 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == own:
        frame, level = frame.f_back, level + 1
    return level
