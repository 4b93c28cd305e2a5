"""The manifest of the folder of programs, over all runs."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError

from ...buffers import SHA256_PATTERN
from ...bundle import SUFFIX
from ...errors import RequestError
from ...nodes.base import Record
from ...reasons import reason as reason_of
from ...trust.carried import signature_path
from ...trust.record import SignedRecord
from .files import write_whole
from .lock import Locked, with_made
from .result import Result

MANIFEST: Final = "manifest.json"
SUMS: Final = "SHA256SUMS"


class Entry(Locked):
    """A program, the file that it lies in, from the folder on, and who signed it."""

    file: str
    file_sha256: Annotated[str, Field(pattern=SHA256_PATTERN)]
    file_bytes: int
    signature: SignedRecord


class Manifest(Record):
    """Entries by graph and target."""

    version: Literal[1] = 1
    programs: dict[str, dict[str, Entry]] = Field(default_factory=dict[str, dict[str, Entry]])


def place(graph: str, target: str, digest: str) -> Path:
    """The path of a program in the folder. Colons of targets are replaced, since file names may not allow them."""
    return Path(graph) / target.replace(":", "-") / f"{digest}{SUFFIX}"


def read_manifest(out: Path) -> Manifest:
    """The manifest in `out`, empty if there is none. RequestError when it is not a manifest of this version."""
    path = out / MANIFEST
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return Manifest()
    except (OSError, ValidationError) as error:
        reason = reason_of(error.errors()[0]) if isinstance(error, ValidationError) else str(error)
        raise RequestError(
            f"{path} is not a manifest that this version can read: {reason}. Remove it, or write elsewhere with --out."
        ) from None


def write_manifest(out: Path, graphs: Collection[str], results: Sequence[Result]) -> None:
    """Write the manifest of `out` after a run: its programs, and those of earlier runs for `graphs` that still exist.

    RequestError when the old manifest cannot be read, or the new one cannot be written.
    """
    kept = {
        graph: there
        for graph, targets in read_manifest(out).programs.items()
        if graph in graphs
        and (there := {target: entry for target, entry in targets.items() if _lies_there(out, graph, target, entry)})
    }
    made = {(each.file.name, each.target): _entry(out, each) for each in results if each.made is not None}
    entries = with_made(kept, made)
    said = Manifest(programs=entries).model_dump(mode="json", by_alias=True)
    listed = sorted((each for targets in entries.values() for each in targets.values()), key=lambda each: each.file)
    write_whole(out / SUMS, "".join(map(_sum, listed)))
    write_whole(out / MANIFEST, json.dumps(said, indent=1, sort_keys=True) + "\n")


def _entry(out: Path, result: Result) -> Entry:
    assert result.made is not None
    inside = place(result.file.name, result.target, result.made.digest)
    digest, size = _content(out / inside)
    signature = SignedRecord.model_validate_json(signature_path(out / inside).read_bytes())
    return Entry(
        **result.made.model_dump(),
        file=inside.as_posix(),
        file_sha256=digest,
        file_bytes=size,
        signature=signature,
    )


def _lies_there(out: Path, graph: str, target: str, entry: Entry) -> bool:
    # The path is computed anew, so that a foreign manifest cannot refer to files outside the folder.
    inside = place(graph, target, entry.digest)
    try:
        return entry.file == inside.as_posix() and _content(out / inside) == (entry.file_sha256, entry.file_bytes)
    except OSError:
        return False


def _content(path: Path) -> tuple[str, int]:
    with open(path, "rb") as file:
        return file_digest(file, "sha256").hexdigest(), file.tell()


def _sum(entry: Entry) -> str:
    """A line of `sha256sum`, which marks lines with escaped names."""
    name = entry.file.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"{'' if name == entry.file else chr(92)}{entry.file_sha256}  {name}\n"
