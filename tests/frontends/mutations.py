"""Damaged models: `python -m tests.frontends.mutations --format onnx --count 2000 --seed 1` prints what became of them.

Bits flip, ends are cut off, pieces of the file are moved, and sizes become extreme; in archives, also those of an entry
whose checksum is right. Each mutant is a model, or an error of ours, within limits of time and memory.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import resource
import shutil
import signal
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np

from tensorkiln import Client
from tensorkiln.build import Builder, softmax
from tensorkiln.errors import CrashedError, TensorkilnError, UnsupportedGraphError
from tensorkiln.frontends.model import Model
from tensorkiln.graph import Graph
from tensorkiln.stablehlo import StableHlo

ROOT: Final = Path(__file__).parents[2]
SECONDS: Final = 20
"""Within which each mutant is a model or an error."""
MEMORY_MIB: Final = 1024
"""By how much a campaign may grow this process."""
_EXTREMES: Final = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, (1 << 63) - 1, (1 << 64) - 1)
_WORDS: Final = (b"0", b"-1", b"4294967296", b"9223372036854775807", b"99999999999999999999", b"1e400", b"null", b'"x"')


def _flipped(content: bytearray, chance: Random, other: bytes) -> None:
    del other
    for _ in range(chance.randint(1, 8)):
        place = chance.randrange(len(content))
        content[place] ^= 1 << chance.randrange(8)


def _cut(content: bytearray, chance: Random, other: bytes) -> None:
    del other
    place = chance.randrange(len(content))
    del content[place : place + chance.choice([1, 4, 64, len(content)])]


def _spliced(content: bytearray, chance: Random, other: bytes) -> None:
    begin, size = chance.randrange(len(other)), chance.choice([1, 4, 16, 256])
    place = chance.randrange(len(content))
    content[place : place + chance.choice([0, size])] = other[begin : begin + size]


def _sized(content: bytearray, chance: Random, other: bytes) -> None:
    del other
    width = chance.choice([1, 2, 4, 8])
    place = chance.randrange(len(content)) // width * width
    content[place : place + width] = (chance.choice(_EXTREMES) % (1 << 8 * width)).to_bytes(width, "little")


def _worded(content: bytearray, chance: Random, other: bytes) -> None:
    """A number that is written out becomes another word; where there is none, a size does."""
    places = [match.span() for match in re.finditer(rb"-?\d+", content)]
    if not places:
        return _sized(content, chance, other)
    begin, end = chance.choice(places)
    content[begin:end] = chance.choice(_WORDS)


KINDS: Final[Mapping[str, Callable[[bytearray, Random, bytes], None]]] = {
    "bits": _flipped,
    "cut": _cut,
    "splice": _spliced,
    "size": _sized,
    "word": _worded,
}


def mutant(samples: list[bytes], chance: Random) -> tuple[str, bytes]:
    """A damaged sample, and how it was damaged. Of an archive, half the time an entry is, and the archive fits it."""
    sample, other = chance.choice(samples), chance.choice(samples)
    kind = chance.choice(list(KINDS))
    if zipfile.is_zipfile(io.BytesIO(sample)) and chance.random() < 0.75:
        return f"{kind} of an entry", _with_entry_changed(sample, kind, chance)
    content = bytearray(sample)
    KINDS[kind](content, chance, other)
    return kind, bytes(content)


def _with_entry_changed(sample: bytes, kind: str, chance: Random) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(sample)) as given, zipfile.ZipFile(stream, "w") as made:
        entries = {name: given.read(name) for name in given.namelist()}
        target = chance.choice([name for name, content in entries.items() if content])
        for name, content in entries.items():
            changed = bytearray(content)
            if name == target:
                KINDS[kind](changed, chance, chance.choice([each for each in entries.values() if each]))
            made.writestr(name, bytes(changed))
    return stream.getvalue()


@dataclass(frozen=True, slots=True)
class Format:
    """Files that are models, and what reads one. MLIR is read by the service of the client, in its sandbox."""

    samples: Callable[[], list[bytes]]
    read: Callable[[bytes, Client], Any]


def _onnx_samples() -> list[bytes]:
    import onnx

    from tests.frontends.onnx.small_networks import residual_network, shuffled_network

    data = Path(onnx.__file__).parent / "backend" / "test" / "data"
    names = ("simple/test_expand_shape_model1", "pytorch-converted/test_GLU", "pytorch-operator/test_operator_pad")
    networks = [make(np.random.default_rng(1)).SerializeToString() for make in (residual_network, shuffled_network)]
    exports = [_EXPORTS / f"{name}.onnx" for name in ("dynamo_batch", "torchscript_batch", "dynamo_static")]
    return [path.read_bytes() for path in [*exports, *(data / name / "model.onnx" for name in names)]] + networks


_EXPORTS: Final = ROOT / "tests" / "models" / "files" / "gpt_step"


def _read_onnx(content: bytes, client: Client) -> Any:
    """From a file beside the weights of the exports, which are external data."""
    from tensorkiln.frontends.onnx import load

    del client
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(_EXPORTS / "weights.bin", folder)
        path = Path(folder, "model.onnx")
        path.write_bytes(content)
        return load(path, symbols={"batch": (1, 8)} if b"batch" in content else None)


def _jax_samples() -> list[bytes]:
    names = ("networks/n_mlp", "elementwise/add", "control/scan", "indexing/gather")
    folder = ROOT / "tests/frontends/jax/files"
    found = [folder / f"{name}.jax" for name in names]
    return [path.read_bytes() for path in [*sorted(folder.glob("*/*.jax"))[::60], *found] if path.exists()]


def _read_jax(content: bytes, client: Client) -> Any:
    from tensorkiln.frontends.jax import load, read_exported

    exported = read_exported(content)
    names = {dim for aval in exported.in_avals for dim in aval.shape if dim.isidentifier()}
    return load(exported, symbols=dict.fromkeys(names, (1, 16)), client=client).model


def _torch_samples() -> list[bytes]:
    from tests.frontends.torch.exports import cases, program

    wanted = ("documented", "counter", "conv2d", "keyed")
    return [program(family, name).getvalue() for family, name in cases() if name in wanted]


def _read_torch(content: bytes, client: Client) -> Any:
    from tensorkiln.frontends.torch import load

    del client
    with tempfile.NamedTemporaryFile(suffix=".pt2") as file:
        file.write(content)
        file.flush()
        return load(file.name)


def _saved_samples() -> list[bytes]:
    builder = Builder("saved")
    rows = builder.symbol("n", 1, 64)
    x, w = builder.input("float32", (rows, 4), "x"), builder.parameter("float32", (4, 3), "w")
    builder.output(softmax(x @ w + builder.constant([0.5, 1.5, 2.5], "float32")))
    graph = builder.graph()
    model = Model(graph, {w.var: np.ones((4, 3), np.float32)}, {"x": x.var}, {"y": graph.output_vars[0]})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.kilnmodel")
        model.save(path)
        return [path.read_bytes()]


def _read_saved(content: bytes, client: Client) -> Any:
    del client
    with tempfile.NamedTemporaryFile(suffix=".kilnmodel") as file:
        file.write(content)
        file.flush()
        return Model.load(file.name)


def _artifact_samples() -> list[bytes]:
    exported = sorted((ROOT / "tests/stablehlo/exported").glob("*.mlirbc"))
    # The one that maps over several devices is refused as it is.
    return [path.read_bytes() for path in exported if path.stem != "mapped"]


def _read_artifact(content: bytes, client: Client) -> Any:
    try:
        return client.translate(StableHlo(content))
    except UnsupportedGraphError as error:
        if "has no bounds" not in error.message:
            raise
        return client.translate(StableHlo(content, {"0.0": (1, 16)}))


_TEXT: Final = b"""
func.func private @double(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>, %w: tensor<4x3xf32>, %i: tensor<2xi32>) -> (tensor<3xf32>, tensor<2xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = call @double(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [0] x [0] : (tensor<4xf32>, tensor<4x3xf32>) -> tensor<3xf32>
  %2 = stablehlo.reduce(%w init: %zero) applies stablehlo.maximum across dimensions = [0, 1]
    : (tensor<4x3xf32>, tensor<f32>) -> tensor<f32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<3xf32>
  %4 = stablehlo.divide %1, %3 : tensor<3xf32>
  %5 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
    start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}>
    : (tensor<4xf32>, tensor<2xi32>) -> tensor<2xf32>
  return %4, %5 : tensor<3xf32>, tensor<2xf32>
}
"""


def _text_samples() -> list[bytes]:
    return [_TEXT]


def _read_text(content: bytes, client: Client) -> Any:
    return client.translate(StableHlo(content.decode("utf-8", "replace")))


FORMATS: Final[Mapping[str, Format]] = {
    "onnx": Format(_onnx_samples, _read_onnx),
    "jax": Format(_jax_samples, _read_jax),
    "pt2": Format(_torch_samples, _read_torch),
    "kilnmodel": Format(_saved_samples, _read_saved),
    "artifact": Format(_artifact_samples, _read_artifact),
    "text": Format(_text_samples, _read_text),
}


class _TooLongError(BaseException):
    """Not an `Exception`, so that nothing takes it for an error of a model."""


@contextmanager
def _within(seconds: int) -> Generator[None]:
    def stop(number: int, frame: object) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@dataclass
class Campaign:
    """What became of the mutants. `wrong` has those that gave neither a model nor an error of ours, with the reason."""

    outcomes: Counter[str] = field(default_factory=Counter[str])
    wrong: list[tuple[int, str, str]] = field(default_factory=list[tuple[int, str, str]])
    slowest: float = 0.0
    grown_mib: float = 0.0

    def shown(self) -> str:
        """The figures."""
        listed = "\n".join(f"  mutant {number} ({kind}): {reason}" for number, kind, reason in self.wrong)
        return (
            f"{self.outcomes.total()} mutants: {dict(self.outcomes.most_common())}\n"
            f"slowest {self.slowest:.2f} s, memory grew by {self.grown_mib:.0f} MiB; {len(self.wrong)} wrong\n{listed}"
        )


def fits(found: Any) -> bool:
    """Whether what was read is a model whose parameters are those of its graph."""
    if isinstance(found, Graph):
        return bool(found.output_vars)
    return isinstance(found, Model) and all(
        array.shape == tuple(found.graph.types[var].shape) and array.dtype == found.graph.types[var].dtype.numpy
        for var, array in found.parameters.items()
    )


def campaign(name: str, count: int, seed: int, client: Client, first: int = 0, seconds: int | None = None) -> Campaign:
    """Read mutants `first` to `first + count`; each is drawn by the seed and its number alone.

    With `seconds` one that takes longer is stopped, by the alarm of this process.
    """
    form, result = FORMATS[name], Campaign()
    samples = form.samples()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for number in range(first, first + count):
        kind, content = mutant(samples, Random(f"{name}/{seed}/{number}"))
        began = time.monotonic()
        try:
            with _within(seconds) if seconds is not None else nullcontext():
                found = form.read(content, client)
            outcome = "a model"
            if not fits(found):
                result.wrong.append((number, kind, "a model whose parts do not fit"))
        except CrashedError as error:
            # A signal is MLIR's reader of bytecode, which trusts what it reads; a status is a defect of our own.
            outcome = f"CrashedError {error.details.get('signal')}"
            if error.details.get("signal") is None:
                result.wrong.append((number, kind, error.message[:300]))
        except TensorkilnError as error:
            outcome = type(error).__name__
        except _TooLongError:
            outcome = "too long"
            result.wrong.append((number, kind, f"not done after {seconds} s"))
        except Exception as error:  # what must not happen is what is looked for
            outcome = f"{type(error).__name__} of others"
            place = traceback.extract_tb(error.__traceback__)[-1]
            result.wrong.append((number, kind, f"{error!r:.300} at {place.filename}:{place.lineno}"))
        result.outcomes[outcome] += 1
        result.slowest = max(result.slowest, time.monotonic() - began)
    result.grown_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    if result.grown_mib > MEMORY_MIB:
        result.wrong.append((-1, "all", f"memory grew by {result.grown_mib:.0f} MiB"))
    return result


def main() -> None:
    """Run a campaign of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--format", choices=[*FORMATS, "all"], default="all")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first mutant")
    given = parser.parse_args()
    # Of the embedded service, so that what does not end is ended by the sandbox.
    os.environ["KILN_COMPILE_DEADLINE_S"] = "5"
    with Client() as client:
        for name in FORMATS if given.format == "all" else [given.format]:
            print(
                f"{name}: {campaign(name, given.count, given.seed, client, given.first, SECONDS).shown()}", flush=True
            )


if __name__ == "__main__":
    main()
