"""Rights to read, as the store has them: one small record for each owner and digest; see `service.identity.access`.

A right is removed once its target is gone, so that rights do not accumulate.
"""

from __future__ import annotations

from typing import Final

FOLDER: Final = "access/"


def path_of(owner: str, digest: str) -> str:
    """The path of the right of `owner`, given by its folder, to read the blob or program with this digest."""
    return f"{FOLDER}{owner}/{digest[:2]}/{digest}"


def target_of(path: str) -> str:
    """The digest of the target of the right at `path`: of a blob, or of an action."""
    return path.rpartition("/")[2]
