"""`kiln run --input` of files that are no arrays, or no longer."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tensorkiln.cli.arrays import read_arrays
from tensorkiln.errors import RequestError
from tests.sdk.conftest import Kiln, one_line


def saved(array: np.ndarray) -> bytes:
    """The bytes of an .npz with one array."""
    file = io.BytesIO()
    np.savez(file, a=array)
    return file.getvalue()


def flipped() -> bytes:
    """An .npz with another byte in the numbers of its array than its sum is of."""
    content = bytearray(saved(np.full(64, 7.0, np.float32)))
    place = content.index(np.float32(7.0).tobytes() * 8)
    content[place] ^= 0xFF
    return bytes(content)


def pickled() -> bytes:
    """An .npz with an array of Python's objects."""
    return saved(np.array([{}, None], object))


def with_text() -> bytes:
    """An .npz with a member that is not an array."""
    file = io.BytesIO(saved(np.ones(3, np.float32)))
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("readme.txt", "what this is")
    return file.getvalue()


def npy(header: bytes) -> bytes:
    """An .npy with this header and no numbers."""
    padded = header.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded


HUGE = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 64), }"
BROKEN: dict[str, Callable[[], bytes]] = {
    "garbage.npz": lambda: b"PK\003\004garbage",
    "flipped.npz": flipped,
    "objects.npz": pickled,
    "readme.npz": with_text,
    "huge.npy": lambda: npy(HUGE),
    "unclosed.npy": lambda: npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (4, "),
    "deep.npy": lambda: npy(b"(" * 100),
    "empty.npy": lambda: b"",
    "text.npy": lambda: b"1 2 3\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_is_no_array_is_wrong_usage(kiln: Kiln, graph_file: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(BROKEN[name]())
    refused = one_line(kiln("run", graph_file.name, "-i", name, "-s", "n=4"), 2)
    assert refused.startswith(f"error[request.invalid]: {name} cannot be read as .npy or .npz: ")


def test_a_file_with_any_changed_byte_is_read_or_refused(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    file = io.BytesIO()
    np.save(file, np.ones((2, 3), np.float32))
    packed = io.BytesIO()
    np.savez_compressed(packed, a=np.ones((2, 3), np.float32))
    refused = 0
    for name, whole in (("one.npy", file.getvalue()), ("packed.npz", packed.getvalue())):
        for place in range(len(whole)):
            content = bytearray(whole)
            content[place] ^= int(generator.integers(1, 256))
            (tmp_path / name).write_bytes(content)
            try:
                read_arrays([tmp_path / name])
            except RequestError:
                refused += 1
    assert refused > len(file.getvalue()) // 2
