"""A compiled program with its artifacts in one file, to be copied to the machine that runs it.

The file is a zip archive of stored entries: `manifest.json`, `program.json`, `names.json` and `artifacts/<SHA-256>`.
Equal programs give equal bytes. Nothing is extracted to a path: entries are read by the names that the manifest
implies. The signature is in a separate file: `tensorkiln.trust.carried`.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Annotated, BinaryIO, Final, Literal

from pydantic import Field, ValidationError

from .errors import RequestError, UnavailableError
from .limits import SHA256_PATTERN
from .nodes.base import Record
from .reasons import reason
from .spec import CompiledProgram
from .spec.names import Names
from .stored_entries import UNREADABLE, DamagedEntryError, EntryError, StoredEntries, add_entry
from .whole_file import whole_file

VERSION: Final = 2
SUFFIX: Final = ".kiln"
MAX_MANIFEST_BYTES: Final = 16 << 20
MAX_PROGRAM_BYTES: Final = 256 << 20
MAX_ARTIFACT_BYTES: Final = 1 << 30
MAX_TOTAL_BYTES: Final = 4 << 30

_MANIFEST: Final = "manifest.json"
_PROGRAM: Final = "program.json"
_NAMES: Final = "names.json"
_ARTIFACTS: Final = "artifacts/"
_LIMIT: Final = "bundle_entry_bytes"
_CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Bundle:
    """A program with its graph's names, the SHA-256 of its signed (canonical) form, and its artifacts by SHA-256."""

    program: CompiledProgram
    signed: str
    artifacts: Mapping[str, bytes]


_Digest = Annotated[str, Field(pattern=SHA256_PATTERN)]


class _Manifest(Record):
    """The SHA-256 of what the archive holds. Version 1 had the program in the names of its graph."""

    tensorkiln_bundle: Literal[1, 2]
    program: _Digest
    names: _Digest | None = None
    artifacts: tuple[_Digest, ...]


def is_bundle(path: str | os.PathLike[str]) -> bool:
    """Whether the file is named like a bundle."""
    return Path(path).suffix.lower() == SUFFIX


def write_bundle(
    path: str | os.PathLike[str],
    program: CompiledProgram,
    artifacts: Callable[[str], bytes],
    *,
    signed: bytes | None = None,
    beside: Callable[[], None] = lambda: None,
) -> None:
    """Write `program` and its artifacts; `artifacts` returns the bytes for a SHA-256.

    `signed` is the signed form of the program, in canonical names. The file is written completely or not at all;
    `beside` is called just before the file appears. UnavailableError when an artifact has the wrong bytes, or `signed`
    is another program; OSError when the file cannot be written.
    """
    contents = {digest: artifacts(digest) for digest in sorted(program.artifacts)}
    for digest, content in contents.items():
        _require_digest(f"artifact {digest}", content, digest)
    record = program.model_dump_json().encode() if signed is None else signed
    names = _names(program, record).model_dump_json().encode()
    manifest = _Manifest(
        tensorkiln_bundle=VERSION,
        program=sha256(record).hexdigest(),
        names=sha256(names).hexdigest(),
        artifacts=tuple(sorted(contents)),
    )
    with whole_file(path) as file:
        _write(file, manifest, {_PROGRAM: record, _NAMES: names}, contents)
        beside()


def _names(program: CompiledProgram, record: bytes) -> Names:
    try:
        return Names.between(CompiledProgram.model_validate_json(record), program)
    except ValueError as error:
        raise UnavailableError(
            f"The program {program.digest} is not the one that was signed ({error}); compile it again."
        ) from error


def read_bundle(path: str | os.PathLike[str]) -> Bundle:
    """Read the program in a file and verify every byte.

    RequestError when the file is not a bundle, differs in any byte from the output of `write_bundle`, or has an
    unknown version; LimitExceededError when a part is too large; UnavailableError when a part was modified; OSError
    when the file cannot be read.
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return _read(file, archive, name)
        except DamagedEntryError as error:
            raise UnavailableError(str(error)) from error
        except (*UNREADABLE, EntryError) as error:
            raise RequestError(f"{name} is not a bundle: {error}") from error


def _read(file: BinaryIO, archive: zipfile.ZipFile, name: str) -> Bundle:
    entries = StoredEntries(archive, name, MAX_TOTAL_BYTES, "bundle_bytes")
    # Refuse entries that `write_bundle` never writes, such as compressed ones, before reading anything.
    for path in entries.paths:
        entries.require_stored(path)
    manifest = _parse_manifest(entries.content(_MANIFEST, MAX_MANIFEST_BYTES, _LIMIT), name)
    stated = {_PROGRAM: manifest.program, **({_NAMES: manifest.names} if manifest.names is not None else {})}
    if sorted(entries.paths) != sorted([_MANIFEST, *stated, *(_ARTIFACTS + digest for digest in manifest.artifacts)]):
        raise RequestError(f"{name} is not a bundle: its entries differ from its manifest")
    parts = {part: _verified(entries, part, digest, MAX_PROGRAM_BYTES, name) for part, digest in stated.items()}
    artifacts = {
        digest: _verified(entries, _ARTIFACTS + digest, digest, MAX_ARTIFACT_BYTES, name)
        for digest in manifest.artifacts
    }
    program = _program(parts[_PROGRAM], parts.get(_NAMES), name)
    missing = program.artifacts - artifacts.keys()
    if missing:
        raise RequestError(f"{name} lacks {', '.join(sorted(missing))}, which its program needs")
    needed = {digest: artifacts[digest] for digest in sorted(program.artifacts)}
    written = io.BytesIO()
    _write(written, manifest.model_copy(update={"artifacts": tuple(needed)}), parts, needed)
    if not _is_equal(file, written.getbuffer()):
        raise RequestError(f"{name} is not a bundle: it has other bytes than a bundle of its program; write it again")
    return Bundle(program, manifest.program, needed)


def _is_equal(file: BinaryIO, expected: memoryview) -> bool:
    file.seek(0)
    starts = range(0, len(expected), _CHUNK_BYTES)
    same = all(file.read(_CHUNK_BYTES) == bytes(expected[start : start + _CHUNK_BYTES]) for start in starts)
    return same and not file.read(1)


def _program(record: bytes, names: bytes | None, name: str) -> CompiledProgram:
    try:
        program = CompiledProgram.model_validate_json(record)
        return program if names is None else Names.model_validate_json(names).of(program)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        where = "/" + "/".join(str(part) for part in first["loc"])
        raise RequestError(f"the program in {name} cannot be read (at {where}: {reason(first)})") from error
    except ValueError as error:
        raise RequestError(f"the program in {name} cannot be read: {error}") from error


def _parse_manifest(content: bytes, name: str) -> _Manifest:
    try:
        stated = json.loads(content)
        version = stated.get("tensorkiln_bundle") if isinstance(stated, dict) else None
        if isinstance(version, int) and version > VERSION:
            raise RequestError(
                f"{name} is a bundle of version {version} and this SDK knows version {VERSION}; update tensorkiln"
            )
        manifest = _Manifest.model_validate(stated)
        if (manifest.names is None) != (version == 1):
            raise ValueError("names belong to version 2")
        return manifest
    except (ValidationError, ValueError, RecursionError) as error:
        raise RequestError(f"{name} is not a bundle: its manifest cannot be read") from error


def _verified(entries: StoredEntries, path: str, digest: str, most: int, name: str) -> bytes:
    content = entries.content(path, most, _LIMIT)
    _require_digest(f"{path} in {name}", content, digest)
    return content


def _require_digest(what: str, content: bytes, expected: str) -> None:
    actual = sha256(content).hexdigest()
    if actual != expected:
        raise UnavailableError(
            f"{what} is corrupt: its bytes have the SHA-256 {actual}", details={"expected": expected, "actual": actual}
        )


def _write(file: IO[bytes], manifest: _Manifest, parts: Mapping[str, bytes], artifacts: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        add_entry(archive, _MANIFEST, manifest.model_dump_json(indent=1, exclude_none=True).encode())
        for path, content in parts.items():
            add_entry(archive, path, content)
        for digest, content in artifacts.items():
            add_entry(archive, _ARTIFACTS + digest, content)
