"""Safe reading of untrusted zip archives with stored (uncompressed) entries.

It reads bundles, saved models and archives of `torch.export`. Nothing is extracted to a path or decompressed, so the
bytes read are bounded by the file size and by a limit for each entry.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from typing import Any, Final

from .errors import LimitExceededError

DATE: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest date of a zip entry, used for all written entries, so that equal contents give equal bytes."""

UNREADABLE: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, UnicodeDecodeError)
"""Errors that `zipfile` raises for invalid archives, and for versions, flags and names that it does not support."""


class EntryError(ValueError):
    """An archive or an entry violates the format."""


class DamagedEntryError(EntryError):
    """The bytes of an entry do not match the archive's checksum or size."""


class StoredEntries:
    """The entries by path. EntryError for a repeated path, or when the stated sizes exceed the file.

    LimitExceededError with this `limit` when all entries have more than `most` bytes.
    """

    def __init__(
        self, archive: zipfile.ZipFile, name: str, most: int | None = None, limit: str = "archive_bytes"
    ) -> None:
        self._archive, self._name = archive, name
        self._entries: dict[str, zipfile.ZipInfo] = {}
        for entry in archive.infolist():
            if entry.filename in self._entries:
                raise EntryError(f"the entry {entry.filename!r} appears twice")
            self._entries[entry.filename] = entry
        total = sum(entry.compress_size for entry in self._entries.values())
        # Overlapping entries could expand to more bytes than the file has.
        if total > archive.start_dir:
            raise EntryError(f"the entries of the archive state {total} bytes, and it has {archive.start_dir}")
        stated = sum(entry.file_size for entry in self._entries.values())
        if most is not None and stated > most:
            raise LimitExceededError(
                f"{name} has {stated} bytes; {most} are allowed", limit=limit, maximum=most, actual=stated
            )

    def __contains__(self, path: str) -> bool:
        return path in self._entries

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all entries, in the archive's order."""
        return tuple(self._entries)

    @property
    def size(self) -> int:
        """Bytes of the file before its central directory: the most that all entries can have."""
        return self._archive.start_dir

    def require_stored(self, path: str) -> None:
        """EntryError for an entry that is missing, a folder, compressed or encrypted."""
        entry = self._entries.get(path)
        if entry is None:
            raise EntryError(f"it has no entry {path!r}")
        if entry.is_dir():
            raise EntryError(f"the entry {path!r} is a folder")
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1 or entry.compress_size != entry.file_size:
            raise EntryError(f"the entry {path!r} is compressed or encrypted")

    def content(self, path: str, most: int | None = None, limit: str = "entry_bytes") -> bytes:
        """The bytes of an entry.

        EntryError as for `require_stored`, DamagedEntryError when its bytes do not match the archive, and
        LimitExceededError with this `limit` when they are more than `most`.
        """
        self.require_stored(path)
        size = self._entries[path].file_size
        if most is not None and size > most:
            raise LimitExceededError(
                f"{path} in {self._name} has {size} bytes; {most} are allowed", limit=limit, maximum=most, actual=size
            )
        try:
            return self._archive.read(path)
        # The stated offset may be negative, or too large for a seek.
        except (*UNREADABLE, OSError, ValueError, OverflowError) as error:
            raise DamagedEntryError(f"{path} in {self._name} is corrupt: {error}") from error

    def json_object(self, path: str, most: int, limit: str = "entry_bytes") -> dict[str, Any]:
        """The JSON object in an entry. EntryError when it is not one; other errors as for `content`."""
        text = self.content(path, most, limit)
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise EntryError(f"{path!r} is not JSON: {error}") from error
        if not isinstance(record, dict):
            raise EntryError(f"{path!r} holds no object")
        return record  # pyright: ignore[reportUnknownVariableType]


def add_entry(archive: zipfile.ZipFile, path: str, content: bytes, *, mode: int = 0o100644) -> None:
    """Write an entry with fixed date and system fields, independent of when and where it is written."""
    info = zipfile.ZipInfo(path, DATE)
    info.compress_type, info.create_system, info.external_attr = zipfile.ZIP_STORED, _UNIX, mode << 16
    archive.writestr(info, content)


_UNIX: Final = 3
