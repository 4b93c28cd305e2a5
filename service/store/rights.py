"""Rights to read, as the store has them: one small record for each owner and digest; see `service.identity.access`.

One is of use while there is something to read. It goes with that, so that rights do not outgrow what they are to.
"""

from __future__ import annotations

from typing import Final

FOLDER: Final = "access/"


def path_of(owner: str, digest: str) -> str:
    """Where the right of the owner with this folder is kept, to what has this digest."""
    return f"{FOLDER}{owner}/{digest[:2]}/{digest}"


def target_of(path: str) -> str:
    """The digest of what the right at `path` is to: of bytes, or of an action."""
    return path.rpartition("/")[2]
