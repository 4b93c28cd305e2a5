"""Entries of archives are read where they are stored, once, within their limits and the file."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

import pytest

from tensorkiln.errors import LimitExceededError
from tensorkiln.stored_entries import DamagedEntryError, EntryError, StoredEntries, add_entry

PARTS = {"a.json": b'{"n": 1}', "folder/b": bytes(100), "empty": b""}


def written(parts: Mapping[str, bytes]) -> bytearray:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for path, content in parts.items():
            add_entry(archive, path, content)
    return bytearray(stream.getvalue())


def opened(content: bytes | bytearray, most: int | None = None) -> StoredEntries:
    return StoredEntries(zipfile.ZipFile(io.BytesIO(content)), "the archive", most)


def test_stored_entries_round_trip_and_are_deterministic() -> None:
    entries = opened(written(PARTS))
    assert {path: entries.content(path) for path in entries.paths} == PARTS
    assert entries.json_object("a.json", 8) == {"n": 1}
    assert written(PARTS) == written(PARTS)
    assert "empty" in entries
    assert "other" not in entries
    assert entries.size > sum(map(len, PARTS.values()))


def test_invalid_stored_entries_are_refused() -> None:
    entries = opened(written(PARTS | {"below/": b""}))
    for path, message in (("other", "it has no entry 'other'"), ("below/", "the entry 'below/' is a folder")):
        with pytest.raises(EntryError, match=message):
            entries.content(path)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb", bytes(1 << 20))
    with pytest.raises(EntryError, match="'bomb' is compressed or encrypted"):
        opened(stream.getvalue()).content("bomb")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        add_entry(archive, "twice", b"1")
        with pytest.warns(UserWarning, match="Duplicate name"):
            add_entry(archive, "twice", b"2")
    with pytest.raises(EntryError, match="'twice' appears twice"):
        opened(stream.getvalue())


def test_an_entry_beyond_its_limit_is_refused_before_it_is_read() -> None:
    content = written(PARTS)
    with pytest.raises(LimitExceededError, match="folder/b in the archive has 100 bytes; 99 are allowed"):
        opened(content).content("folder/b", 99)
    with pytest.raises(LimitExceededError, match="the archive has 108 bytes; 107 are allowed"):
        opened(content, 107)
    assert opened(content, 108).content("folder/b", 100) == bytes(100)


def test_entries_cannot_state_more_than_the_file_holds() -> None:
    content = written({"a": bytes(50), "b": bytes(50)})
    place = content.find(b"PK\x01\x02")
    while place >= 0:
        for field in (20, 24):
            content[place + field : place + field + 4] = (150).to_bytes(4, "little")
        place = content.find(b"PK\x01\x02", place + 4)
    with pytest.raises(EntryError, match="the entries of the archive state 300 bytes, and it has"):
        opened(content)


def test_damage_is_told_from_what_was_never_right() -> None:
    content = written(PARTS)
    content[content.find(b'{"n"') + 1] ^= 1
    with pytest.raises(DamagedEntryError, match=r"a\.json in the archive is corrupt"):
        opened(content).content("a.json")


@pytest.mark.parametrize("text", [b"[]", b"no JSON", b"[" * 100_000, b"\xff"])
def test_json_other_than_objects_is_refused(text: bytes) -> None:
    with pytest.raises(EntryError, match=r"'a\.json' (holds no object|is not JSON)"):
        opened(written({"a.json": text})).json_object("a.json", 1 << 20)
