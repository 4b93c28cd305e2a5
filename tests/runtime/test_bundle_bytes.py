"""A bundle is the bytes that its writer makes of what is in it, and no others."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from tensorkiln.bundle import read_bundle, write_bundle
from tensorkiln.errors import RequestError, TensorkilnError
from tests.runtime.sketch import Sketch


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A bundle of a program that has nothing but a constant."""
    sketch, path = Sketch(), tmp_path / "constant.kiln"
    sketch.buffer([2], "constant", content=b"12345678")
    write_bundle(path, sketch.compiled(), sketch.artifacts.__getitem__)
    return path


def with_comment(path: Path) -> None:
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"and more"


def in_another_order(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        entries = [(entry, archive.read(entry)) for entry in archive.infolist()]
    with zipfile.ZipFile(path, "w") as archive:
        for entry, content in reversed(entries):
            archive.writestr(entry, content)


def of_today(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        parts = [(name, archive.read(name)) for name in archive.namelist()]
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts:
            archive.writestr(name, content)


def with_an_artifact_that_nothing_needs(path: Path) -> None:
    digest = sha256(b"more").hexdigest()
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(parts["manifest.json"])
    manifest["artifacts"] = sorted([*manifest["artifacts"], digest])
    parts["manifest.json"] = json.dumps(manifest, indent=1).encode()
    parts[f"artifacts/{digest}"] = b"more"
    with zipfile.ZipFile(path, "w") as archive:
        for name in sorted(parts, key=lambda name: (name.startswith("artifacts/"), name if "/" in name else "")):
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, parts[name])


def with_a_manifest_that_says_more(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        entries = [(entry, archive.read(entry)) for entry in archive.infolist()]
    with zipfile.ZipFile(path, "w") as archive:
        for entry, content in entries:
            archive.writestr(entry, content.replace(b"{", b'{"program": "unseen",', entry.filename == "manifest.json"))


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(b"#!/bin/sh\n" + path.read_bytes()),
        lambda path: path.write_bytes(path.read_bytes() + b"more"),
        with_comment,
        in_another_order,
        of_today,
        with_an_artifact_that_nothing_needs,
        with_a_manifest_that_says_more,
    ],
)
def test_a_file_with_other_bytes_than_a_bundle_of_its_content_is_refused(
    written: Path, change: Callable[[Path], object]
) -> None:
    change(written)
    with pytest.raises(RequestError, match="is not a bundle"):
        read_bundle(written)


def beside_the_content(path: Path) -> list[int]:
    """The positions of bytes of the archive itself: headers, names and the directory at its end."""
    found, begin = list[int](), 0
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            start = entry.header_offset + 30 + len(entry.filename)
            found += range(begin, start)
            begin = start + entry.file_size
    return found + list(range(begin, path.stat().st_size))


@pytest.mark.parametrize("mask", [0x01, 0x20, 0xFF])
def test_every_changed_byte_beside_the_content_is_refused(written: Path, mask: int) -> None:
    whole = written.read_bytes()
    for position in beside_the_content(written):
        written.write_bytes(whole[:position] + bytes([whole[position] ^ mask]) + whole[position + 1 :])
        with pytest.raises(TensorkilnError):
            read_bundle(written)
