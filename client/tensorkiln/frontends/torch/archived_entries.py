"""Entries of a zip archive, read only as far as the file holds their bytes."""

from __future__ import annotations

import json
import zipfile
from typing import Any

from ...errors import InvalidGraphError, UnsupportedGraphError


def check_entries(archive: zipfile.ZipFile) -> None:
    """InvalidGraphError for entries that overlap: together they would be longer than the file."""
    total = sum(entry.compress_size for entry in archive.infolist())
    if total > archive.start_dir:
        raise InvalidGraphError(f"the entries of the archive state {total} bytes, and it has {archive.start_dir}")


def content(archive: zipfile.ZipFile, path: str) -> bytes:
    """InvalidGraphError when there is no entry of that path, or one that is compressed, as torch writes none."""
    entry = archive.NameToInfo.get(path)
    if entry is None:
        raise InvalidGraphError(f"the archive has no entry {path!r}")
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
        raise InvalidGraphError(f"the entry {path!r} is compressed, which torch's are not")
    return archive.read(entry)


def json_content(archive: zipfile.ZipFile, path: str, most: int) -> dict[str, Any]:
    """An object of JSON. UnsupportedGraphError for a text of more than `most` bytes."""
    text = content(archive, path)
    if len(text) > most:
        raise UnsupportedGraphError(f"{path!r} has {len(text)} bytes, more than the {most} that are read")
    record = json.loads(text)
    if not isinstance(record, dict):
        raise ValueError(f"{path!r} holds no object")
    return record  # pyright: ignore[reportUnknownVariableType]
