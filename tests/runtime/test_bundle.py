"""Programs in one file: complete, deterministic, verified when they are read."""

from __future__ import annotations

import io
import json
import os
import stat
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from tensorkiln import bundle
from tensorkiln.bundle import read_bundle, write_bundle
from tensorkiln.errors import DeviceError, LimitExceededError, RequestError, TensorkilnError, UnavailableError
from tensorkiln.expr import symbol
from tensorkiln.program import Program
from tests.runtime.cuda.kernels import DOUBLE as GPU_DOUBLE
from tests.runtime.cuda.sketch import CudaSketch
from tests.runtime.kernels import DOUBLE
from tests.runtime.sketch import Sketch

N = symbol("n")
Parts = dict[str, bytes]


def host_sketch() -> Sketch:
    sketch = Sketch(symbols={"n": (0, 100)})
    x, out = sketch.buffer([N], "input"), sketch.buffer([N], "output")
    sketch.buffer([2], "constant", content=b"12345678")
    sketch.elementwise(DOUBLE, "double_it", [x, out])
    return sketch


@pytest.fixture
def written(tmp_path: Path) -> Path:
    sketch, path = host_sketch(), tmp_path / "double.kiln"
    write_bundle(path, sketch.compiled(), sketch.artifacts.__getitem__)
    return path


def test_a_bundle_runs_without_anything_else(written: Path) -> None:
    program = Program.from_bundle(written, threads=1)
    assert program(np.ones(5, np.float32), n=5)[0].tolist() == [2] * 5
    sketch = host_sketch()
    read = read_bundle(str(written))
    assert read.program == sketch.compiled()
    assert read.artifacts == sketch.artifacts


def test_a_bundle_for_a_gpu_holds_every_form_of_its_code(tmp_path: Path) -> None:
    sketch = CudaSketch(symbols={"n": (0, 100)})
    x, out = sketch.buffer([N], "input"), sketch.buffer([N], "output")
    sketch.elementwise(GPU_DOUBLE, "double_it", [x, out])
    sketch.kernels[0] = sketch.kernels[0].model_copy(update={"binary": sketch.store(b"\x7fELF")})
    write_bundle(tmp_path / "gpu.kiln", sketch.compiled(), sketch.artifacts.__getitem__)
    assert read_bundle(tmp_path / "gpu.kiln").artifacts == sketch.artifacts
    sketch.ir[b"\x7fELF"] = GPU_DOUBLE
    program = Program.from_bundle(tmp_path / "gpu.kiln", device=sketch.driver())
    assert program(np.ones(5, np.float32), n=5)[0].numpy().tolist() == [2] * 5
    with pytest.raises(DeviceError):
        Program.from_bundle(tmp_path / "gpu.kiln", device=99)(np.ones(5, np.float32), n=5)


def test_the_same_program_gives_the_same_bytes(written: Path, tmp_path: Path) -> None:
    sketch = host_sketch()
    os.utime(written, (0, 0))
    for name in ("a.kiln", "b.kiln"):
        write_bundle(tmp_path / name, sketch.compiled(), sketch.artifacts.__getitem__)
        assert (tmp_path / name).read_bytes() == written.read_bytes()
    again = read_bundle(written)
    write_bundle(tmp_path / "c.kiln", again.program, again.artifacts.__getitem__)
    assert (tmp_path / "c.kiln").read_bytes() == written.read_bytes()


def test_a_bundle_is_an_archive_that_any_tool_opens(written: Path) -> None:
    with zipfile.ZipFile(written) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert names[:3] == ["manifest.json", "program.json", "names.json"]
        assert all(name.removeprefix("artifacts/") == sha256(archive.read(name)).hexdigest() for name in names[3:])
    assert stat.S_IMODE(written.stat().st_mode) == 0o644


def test_a_bundle_appears_complete_or_not_at_all(written: Path, tmp_path: Path) -> None:
    sketch, before = host_sketch(), written.read_bytes()
    digest = next(iter(sketch.artifacts))
    sketch.artifacts[digest] += b"!"
    with pytest.raises(UnavailableError, match=f"artifact {digest} is corrupt"):
        write_bundle(written, sketch.compiled(), sketch.artifacts.__getitem__)
    del sketch.artifacts[digest]
    with pytest.raises(KeyError):
        write_bundle(written, sketch.compiled(), sketch.artifacts.__getitem__)
    assert written.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["double.kiln"]


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sketch = host_sketch()

    def full(*arguments: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        write_bundle(tmp_path / "double.kiln", sketch.compiled(), sketch.artifacts.__getitem__)
    assert list(tmp_path.iterdir()) == []


def parts_of(path: Path) -> Parts:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(path: Path, parts: Parts, compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in parts.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content, compression)
    return path


def manifest(parts: Parts, **changes: object) -> Parts:
    return parts | {"manifest.json": json.dumps(json.loads(parts["manifest.json"]) | changes).encode()}


def with_program(parts: Parts, program: bytes) -> Parts:
    return manifest(parts | {"program.json": program}, program=sha256(program).hexdigest())


def with_names(parts: Parts, **changes: object) -> Parts:
    names = json.dumps(json.loads(parts["names.json"]) | changes).encode()
    return manifest(parts | {"names.json": names}, names=sha256(names).hexdigest())


def of_version_1(parts: Parts) -> Parts:
    """The bundle as it was before programs had names apart from them."""
    stated = json.loads(parts["manifest.json"])
    del stated["names"]
    old = {name: content for name, content in parts.items() if name != "names.json"}
    return old | {"manifest.json": json.dumps(stated | {"tensorkiln_bundle": 1}, indent=1).encode()}


def without_artifact(parts: Parts) -> Parts:
    kept = json.loads(parts["manifest.json"])["artifacts"][1:]
    names = ["manifest.json", "program.json", "names.json", *(f"artifacts/{digest}" for digest in kept)]
    return manifest({name: parts[name] for name in names}, artifacts=kept)


CHANGES: list[tuple[Callable[[Parts], Parts], type[TensorkilnError], str]] = [
    (lambda parts: manifest(parts, tensorkiln_bundle=3), RequestError, "is a bundle of version 3 .* update tensorkiln"),
    (lambda parts: manifest(parts, tensorkiln_bundle=1), RequestError, "its manifest cannot be read"),
    (lambda parts: manifest(parts, names=None), RequestError, "its manifest cannot be read"),
    (lambda parts: manifest(parts, tensorkiln_bundle="1"), RequestError, "its manifest cannot be read"),
    (lambda parts: manifest(parts, surprise=1), RequestError, "its manifest cannot be read"),
    (lambda parts: manifest(parts, artifacts=["../../etc/passwd"]), RequestError, "its manifest cannot be read"),
    (lambda parts: parts | {"manifest.json": b"["}, RequestError, "its manifest cannot be read"),
    (lambda parts: parts | {"manifest.json": b"[" * 100_000}, RequestError, "its manifest cannot be read"),
    (lambda parts: parts | {"manifest.json": b"[1]"}, RequestError, "its manifest cannot be read"),
    (lambda parts: parts | {"../evil": b"x"}, RequestError, "its entries differ from its manifest"),
    (lambda parts: parts | {"/etc/evil": b"x"}, RequestError, "its entries differ from its manifest"),
    (lambda parts: parts | {"folder/": b""}, RequestError, "the entry 'folder/' is a folder"),
    (lambda parts: {"program.json": parts["program.json"]}, RequestError, "it has no entry 'manifest.json'"),
    (lambda parts: manifest(parts, artifacts=[]), RequestError, "its entries differ from its manifest"),
    (lambda parts: parts | {"program.json": b"{}"}, UnavailableError, "program.json in .* is corrupt"),
    (
        lambda parts: with_program(parts, b"{}"),
        RequestError,
        r"cannot be read \(at /digest: the field digest is mis",
    ),
    (lambda parts: with_program(parts, b"not json"), RequestError, "the program in .* cannot be read"),
    (lambda parts: parts | {"names.json": b"{}"}, UnavailableError, "names.json in .* is corrupt"),
    (lambda parts: with_names(parts, symbols={}), RequestError, "its names of symbols are not one for each"),
    (lambda parts: with_names(parts, symbols={"n": "a b"}), RequestError, r"cannot be read \(at /symbols/n"),
    (lambda parts: with_names(parts, vars={"0": 0, "1": 0}), RequestError, "its names of vars are not one for each"),
    (lambda parts: with_names(parts, nodes=[-1]), RequestError, r"cannot be read \(at /nodes/0"),
    (without_artifact, RequestError, "lacks [0-9a-f]{64}, which its program needs"),
]


@pytest.mark.parametrize(("change", "error", "message"), CHANGES)
def test_an_archive_that_is_no_bundle_is_refused(
    written: Path, change: Callable[[Parts], Parts], error: type[TensorkilnError], message: str
) -> None:
    rewritten(written, change(parts_of(written)))
    with pytest.raises(error, match=message):
        read_bundle(written)


def test_a_bundle_of_the_first_version_is_still_read(written: Path) -> None:
    rewritten(written, of_version_1(parts_of(written)))
    assert read_bundle(written).program == host_sketch().compiled()


def test_a_bundle_has_what_was_signed_byte_for_byte_and_gives_it_its_names(tmp_path: Path) -> None:
    sketch, path = host_sketch(), tmp_path / "named.kiln"
    canonical = sketch.compiled()
    named = canonical.renamed({"n": "rows"}, {0: 7, 1: 3}, ()).model_copy(update={"name": "double"})
    signed = canonical.model_dump_json(indent=2).encode()
    write_bundle(path, named, sketch.artifacts.__getitem__, signed=signed)
    assert parts_of(path)["program.json"] == signed
    read = read_bundle(path)
    assert (read.program, read.signed) == (named, sha256(signed).hexdigest())
    other = named.model_copy(update={"outputs": named.inputs})
    with pytest.raises(UnavailableError, match="is not the one that was signed"):
        write_bundle(path, other, sketch.artifacts.__getitem__, signed=signed)


def test_a_changed_artifact_is_refused(written: Path) -> None:
    parts = parts_of(written)
    name = next(name for name in parts if name.startswith("artifacts/"))
    rewritten(written, parts | {name: parts[name] + b"!"})
    with pytest.raises(UnavailableError, match=f"{name} in .* is corrupt"):
        read_bundle(written)


def test_a_flipped_byte_is_refused_wherever_it_is(written: Path) -> None:
    whole = written.read_bytes()
    for position in range(0, len(whole), 97):
        written.write_bytes(whole[:position] + bytes([whole[position] ^ 0x20]) + whole[position + 1 :])
        with pytest.raises(TensorkilnError):
            read_bundle(written)


def test_a_truncated_file_is_refused(written: Path) -> None:
    whole = written.read_bytes()
    for length in (0, 3, len(whole) // 2, len(whole) - 1):
        written.write_bytes(whole[:length])
        with pytest.raises(RequestError, match="is not a bundle"):
            read_bundle(written)


def test_an_entry_that_stands_twice_is_refused(written: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(written, "a") as archive:
        archive.writestr("program.json", b"{}")
    with pytest.raises(RequestError, match=r"'program\.json' appears twice"):
        read_bundle(written)


def test_a_compressed_archive_is_refused_before_it_is_unpacked(written: Path) -> None:
    rewritten(written, parts_of(written), zipfile.ZIP_DEFLATED)
    with pytest.raises(RequestError, match="is compressed or encrypted"):
        read_bundle(written)


@pytest.mark.parametrize(
    ("limit", "entry"),
    [
        ("MAX_MANIFEST_BYTES", "manifest.json"),
        ("MAX_PROGRAM_BYTES", "program.json"),
        ("MAX_ARTIFACT_BYTES", "artifacts/"),
        ("MAX_TOTAL_BYTES", "double.kiln"),
    ],
)
def test_a_part_beyond_its_limit_is_refused_before_it_is_read(
    written: Path, monkeypatch: pytest.MonkeyPatch, limit: str, entry: str
) -> None:
    monkeypatch.setattr(bundle, limit, 7)
    with pytest.raises(LimitExceededError, match=f"{entry}.* bytes; 7 are allowed") as caught:
        read_bundle(written)
    assert caught.value.details["maximum"] == 7


def test_a_size_that_the_file_does_not_have_is_refused(written: Path) -> None:
    whole = bytearray(written.read_bytes())
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        entry = archive.getinfo("program.json")
        directory = archive.start_dir
    record = whole.index(b"program.json", directory) - 46
    for field in (20, 24):
        whole[record + field : record + field + 4] = (entry.file_size + 100_000).to_bytes(4, "little")
    written.write_bytes(whole)
    with pytest.raises(TensorkilnError, match=r"corrupt|not a bundle"):
        read_bundle(written)


@pytest.mark.parametrize("place", [(1 << 63) + 5, (1 << 64) - 1, (1 << 63) - 1])
def test_a_place_that_no_file_has_is_refused(written: Path, place: int) -> None:
    whole = bytearray(written.read_bytes())
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        directory = archive.start_dir
    # The 64-bit place of an entry stands in a field behind its path.
    name = whole.index(b"manifest.json", directory)
    whole[name - 46 + 42 : name] = b"\xff" * 4
    whole[name - 46 + 30 : name - 46 + 32] = (12).to_bytes(2, "little")
    whole[name + 13 : name + 13] = b"\1\0\x08\0" + place.to_bytes(8, "little")
    end = whole.rindex(b"PK\5\6")
    size = int.from_bytes(whole[end + 12 : end + 16], "little")
    whole[end + 12 : end + 16] = (size + 12).to_bytes(4, "little")
    written.write_bytes(whole)
    with pytest.raises(UnavailableError, match=r"manifest\.json in .* is corrupt"):
        read_bundle(written)


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_bundle(tmp_path / "missing.kiln")
