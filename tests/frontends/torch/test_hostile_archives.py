"""Archives that were made to harm: what they state is checked before memory or time is spent on it."""

from __future__ import annotations

import io
import json
import random
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tensorkiln.errors import InvalidGraphError, TensorkilnError, UnsupportedGraphError
from tensorkiln.frontends.torch import load

from .exports import program
from .test_refusals import WEIGHTS, Record, changed

WRONG: tuple[Any, ...] = ("3", "", None, [], {}, [[]], -1, 1.5, True, 1 << 70, {"as_int": 3}, ["x"], "x" * 100)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container of a record with a key of it."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    found: list[tuple[Any, Any]] = []
    for key in keys:
        found.append((value, key))
        found += places(value[key])
    return found


@pytest.mark.parametrize("name", ["documented", "counter", "conv2d", "keyed"])
@pytest.mark.parametrize("path", ["models/model.json", WEIGHTS])
@pytest.mark.parametrize("seed", range(25))
def test_a_record_with_a_wrong_value_gives_no_other_error(name: str, path: str, seed: int) -> None:
    draw = random.Random(f"{name}{path}{seed}")

    def change(record: Record) -> None:
        listed = places(record)
        for _ in range(draw.randint(1, 2)):
            holder, key = draw.choice(listed)
            holder[key] = draw.choice(WRONG)

    for _ in range(4):
        try:
            load(changed(name, change, path))
        except TensorkilnError:
            continue


def rewritten(entries: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED) -> io.BytesIO:
    """The archive of a case with other entries, by the ends of their paths."""
    stream = io.BytesIO()
    with zipfile.ZipFile(program("networks", "conv2d")) as given, zipfile.ZipFile(stream, "w") as kept:
        for entry in given.namelist():
            content = given.read(entry)
            for name, other in entries.items():
                if entry.endswith(name):
                    content = other
            kept.writestr(entry, content, compression)
    stream.seek(0)
    return stream


def test_compressed_entries_are_refused() -> None:
    with pytest.raises(InvalidGraphError, match="is compressed or encrypted"):
        load(rewritten({"weight_0": bytes(1 << 20)}, zipfile.ZIP_DEFLATED))


def test_entries_that_overlap_are_refused() -> None:
    content = bytearray(rewritten({}).getvalue())
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        largest = max(archive.infolist(), key=lambda entry: entry.file_size)
        start = archive.start_dir
    # The directory has a size of each entry at 20 and 24 bytes: each claims nearly all that there is.
    place = content.find(b"PK\x01\x02", start)
    while place >= 0:
        for field in (20, 24):
            content[place + field : place + field + 4] = (largest.file_size).to_bytes(4, "little")
        place = content.find(b"PK\x01\x02", place + 4)
    with pytest.raises(InvalidGraphError, match="entries of the archive state"):
        load(io.BytesIO(content))


def test_elements_that_repeat_without_end_are_refused() -> None:
    def change(record: Record) -> None:
        for entry in record["config"].values():
            meta = entry["tensor_meta"]
            meta["sizes"] = [{"as_int": 1 << 20}, {"as_int": 1 << 20}]
            meta["strides"] = [{"as_int": 0}, {"as_int": 0}]

    with pytest.raises(UnsupportedGraphError, match="their elements repeat"):
        load(changed("conv2d", change, WEIGHTS))


def test_bytes_in_another_order_are_refused() -> None:
    with pytest.raises(UnsupportedGraphError, match="byte order"):
        load(rewritten({"byteorder": b"big" if sys.byteorder == "little" else b"little"}))


def test_a_config_that_is_no_object_is_refused() -> None:
    for text in (b"[]", b"7", json.dumps({"config": [1]}).encode()):
        with pytest.raises(InvalidGraphError, match="cannot be read as an exported program"):
            load(rewritten({WEIGHTS: text}))


def test_a_file_without_its_middle_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "program.pt2"
    whole = program("networks", "conv2d").getvalue()
    # The first entry would then begin before the file, where no system seeks.
    path.write_bytes(whole[:100] + whole[140:])
    with pytest.raises(InvalidGraphError, match=r"program\.pt2 cannot be read as an exported program"):
        load(path)
