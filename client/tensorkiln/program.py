"""A compiled program that runs on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .errors import DeviceError
from .expr import evaluate
from .runtime.item_profile import ItemProfile
from .runtime.profile import Profile
from .spec import CompiledProgram, ProgramSpec
from .uncollected import uncollected

if TYPE_CHECKING:
    from .report import Report
    from .request import WrittenGraph
    from .runtime.cuda import Driver
    from .runtime.machine import Machine
    from .show.signature import Argument, Signature
    from .trust.record import SignedRecord

Array = np.ndarray[Any, Any]


class _Executor(Protocol):
    """The runtime for programs of one kind of target."""

    @property
    def compiled(self) -> CompiledProgram: ...

    @property
    def measured_peak_bytes(self) -> int: ...

    @property
    def bound(self) -> tuple[int, ...]: ...

    def given(self) -> Mapping[int, Any] | None: ...

    def run(self, arrays: tuple[Any, ...], symbols: Mapping[str, int]) -> tuple[Any, ...]: ...

    def run_into(self, out: Sequence[Any], arrays: tuple[Any, ...], symbols: Mapping[str, int]) -> None: ...

    def bind(self, params: Mapping[int, Any]) -> _Executor: ...

    def on(self, stream: object) -> _Executor: ...

    def profile(self, arrays: tuple[Any, ...], symbols: Mapping[str, int]) -> tuple[ItemProfile, ...]: ...

    def peak(self) -> Machine | None: ...

    def planned_peak_bytes(self, symbols: Mapping[str, int]) -> int: ...


class Program:
    """A callable compiled graph: arrays of `input_vars` and symbols by name in, arrays of `output_vars` out.

    `artifacts` gives the bytes of an artifact by its SHA-256; they are verified before use. A program may be called
    from several threads at once. The results share no memory with the inputs or with each other.

    A CPU program takes and returns NumPy arrays; `threads` bounds how many threads one kernel runs on (default: the
    processors available to this process). A CUDA program takes NumPy arrays and arrays on its GPU, and returns
    `tensorkiln.runtime.cuda.DeviceArray`s, of which `np.asarray` makes NumPy's; `device` is the number of the GPU
    (default: 0) or a driver. `signed` is the signed record of its compile, which a report shows.

    DeviceError when this machine cannot run the program, which for a GPU shows at the first call; UnavailableError
    when an artifact has the wrong bytes.
    """

    def __init__(
        self,
        compiled: CompiledProgram,
        artifacts: Callable[[str], bytes],
        *,
        threads: int | None = None,
        device: int | Driver | None = None,
        signed: SignedRecord | None = None,
    ) -> None:
        self._executor = _load(compiled, artifacts, threads, device)
        self._artifacts = artifacts
        self._place = threads, device
        self._signed = signed

    def _with(self, executor: _Executor) -> Program:
        program = Program.__new__(Program)
        program._executor, program._artifacts, program._place = executor, self._artifacts, self._place
        program._signed = self._signed
        return program

    @classmethod
    def from_bundle(
        cls,
        path: str | PathLike[str],
        *,
        threads: int | None = None,
        device: int | Driver | None = None,
        trusted_keys: Sequence[str] | None = None,
        min_isolation: str | None = None,
    ) -> Program:
        """The program in a file that `Client.save` or `tensorkiln.bundle` wrote.

        With `trusted_keys` (as for a client; default: KILN_TRUSTED_KEYS), the signature beside the file must be by one
        of them, for a compile with `min_isolation` at least: UntrustedArtifactError otherwise. Without any key, the
        file is not verified. Other errors as for `read_bundle` and for a program.
        """
        from .trust.carried import read_trusted, signature_of

        bundle = read_trusted(path, trusted_keys, min_isolation)
        signed = signature_of(path)
        if signed is not None and signed.record.action != bundle.program.digest:
            signed = None
        return cls(bundle.program, bundle.artifacts.__getitem__, threads=threads, device=device, signed=signed)

    @property
    def compiled(self) -> CompiledProgram:
        """The record that the program runs."""
        return self._executor.compiled

    @property
    def kernels(self) -> tuple[ProgramSpec, ...]:
        """The kernels, in the order of their ids."""
        return self.compiled.kernels

    @property
    def signature(self) -> Signature:
        """The arrays and symbols that a call takes, and the arrays that it returns. Not `Client.signature`, a record.

        The inputs of a graph have no names. Here they are `input0`, `input1` and so on, bound inputs included.
        """
        from .show.signature import signature_of

        return signature_of(self.compiled, self._executor.bound)

    @property
    def inputs(self) -> Mapping[str, Argument]:
        """The arrays that a call takes, by the names of `signature`, in order."""
        return {each.name: each for each in self.signature.inputs}

    @property
    def outputs(self) -> Mapping[str, Argument]:
        """The arrays that a call returns, by the names of `signature`, in order."""
        return {each.name: each for each in self.signature.outputs}

    def __repr__(self) -> str:
        from .show.program import program_line

        return program_line("Program", self.compiled, self.signature)

    def _repr_html_(self) -> str:
        from .show.program import program_html

        return program_html(self.compiled, self.signature)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the program's record, artifacts and bound arrays.

        TypeError for a CUDA program with bound arrays (they are on the GPU), on a stream, or on a driver.
        """
        given = self._executor.given()
        if given is None:
            raise TypeError(
                "the bound arrays of a CUDA program are on its GPU: pickle the program before bind and place"
            )
        artifacts = {digest: self._artifacts(digest) for digest in sorted(self.compiled.artifacts)}
        threads, device = self._place
        if not isinstance(device, int | None):
            raise TypeError("a program on a driver of its own cannot be pickled: pickle it before it is placed")
        signed = None if self._signed is None else self._signed.to_json()
        return _unpickled, (self.compiled.model_dump_json(), artifacts, threads, device, given, signed)

    def __call__(self, /, *arrays: Any, **symbols: int) -> tuple[Any, ...]:
        """Run once.

        CallBoundsError when a symbol is missing, unknown or out of bounds, or a launch is larger than the GPU allows;
        CallInputError when the count, dtype, shape or device of the arrays is wrong or a constraint between shapes does
        not hold. Nothing has run then.
        """
        return self._executor.run(arrays, symbols)

    def run_into(self, out: Sequence[Any], /, *arrays: Any, **symbols: int) -> None:
        """Run once and write the results to the arrays in `out`, those of the graph's `output_vars` in order.

        They must be NumPy arrays of exactly the dtypes and shapes of the results, contiguous, aligned and writeable,
        and share no memory with each other or with the inputs. CallInputError otherwise, and as for a call;
        CallBoundsError as for a call; DeviceError for a CUDA program, whose results stay on the GPU. After an error,
        nothing has run.
        """
        self._executor.run_into(out, arrays, symbols)

    def bind(self, params: Mapping[int, Any] | Mapping[str, Any]) -> Program:
        """The same program with some inputs fixed: `params` gives arrays by var, or by name as in `inputs`.

        Calls take only the other inputs.

        Contiguous arrays are kept without a copy, and must not be changed while the program is in use; arrays of the
        host are copied to a GPU once. CallInputError when a var is not a free input or an array does not fit.
        """
        named = {name: each.var for name, each in self.inputs.items()}
        by_var: dict[Any, Any] = {named.get(str(key), key): array for key, array in params.items()}
        return self._with(self._executor.bind(by_var))

    def on(self, stream: object) -> Program:
        """The same program on a CUDA stream: an object with `__cuda_stream__`, or a handle.

        DeviceError for a CPU program, CallInputError when `stream` is not a stream.
        """
        return self._with(self._executor.on(stream))

    def profile(self, /, *arrays: Any, **symbols: int) -> Profile:
        """Run once and return the measured and estimated time of each schedule item, in order of execution.

        `save` of the result writes a trace for Perfetto, or a roofline.
        """
        taken = self._executor.profile(arrays, symbols)
        target = self.compiled.target
        title = f"{self.compiled.name or 'program'} on {target.kind}:{target.cpu or target.arch}"
        threads = max((item.threads for item in taken), default=1)
        counted = (self._counted(item, symbols) for item in taken)
        is_gpu = target.kind != "cpu"
        return Profile(counted, title, is_gpu=is_gpu, threads=threads, peak=self._executor.peak())

    def _counted(self, item: ItemProfile, symbols: Mapping[str, int]) -> ItemProfile:
        """The item with the compiler's estimates: nanoseconds, flops and bytes moved."""
        analysis = self.compiled.schedule.analysis
        if not analysis:
            return item
        found = analysis[item.item_id]
        flops, read, written = (evaluate(dim, symbols) for dim in found.work)
        estimate = found.ns_at(symbols, self.compiled.symbol_ranges)
        return replace(item, estimate_ns=estimate, flops=flops, bytes=read + written)

    def planned_peak_bytes(self, /, **symbols: int) -> int:
        """Bytes that a call allocates for temporaries, outputs and scratch; on a GPU also for inputs from the host.

        Needs no GPU. CallBoundsError as for a call.
        """
        return self._executor.planned_peak_bytes(symbols)

    def report(
        self,
        path: str | PathLike[str] | None = None,
        *,
        graph: WrittenGraph | None = None,
        profile: Sequence[ItemProfile] = (),
        sizes: Mapping[str, int] | None = None,
    ) -> Report:
        """Make a page about the program, one HTML file that needs no network, and write it to `path` if given.

        `graph` is the graph that the program was compiled from; the page then shows its nodes. `profile` is a result
        of the method `profile` at the sizes `sizes`. The page shows the signed record, if a client loaded the program
        or its bundle was signed, and GPU code as text. `Client.report` adds the texts of the stages.
        RequestError when an argument belongs to another program, or a size is missing; OSError when the file cannot be
        written.
        """
        from .report import Report

        compiled = self.compiled
        code = {digest for kernel in compiled.kernels for digest in (kernel.artifact, kernel.binary) if digest}
        # CPU code is a binary object file, which the page cannot show as text.
        artifacts = {digest: self._artifacts(digest) for digest in code if compiled.target.kind == "cuda"}
        made = Report.of(
            compiled, graph=graph, artifacts=artifacts, signature=self._signed, profile=profile, sizes=sizes
        )
        if path is not None:
            made.save(path)
        return made

    @property
    def measured_peak_bytes(self) -> int:
        """Bytes that the most recent call took, counted as by `planned_peak_bytes`; 0 before any call."""
        return self._executor.measured_peak_bytes


def _unpickled(
    record: str,
    artifacts: Mapping[str, bytes],
    threads: int | None,
    device: int | None,
    given: Mapping[int, Any],
    signature: bytes | None = None,
) -> Program:
    from .trust.record import SignedRecord

    compiled = CompiledProgram.model_validate_json(record)
    signed = None if signature is None else SignedRecord.model_validate_json(signature)
    program = Program(compiled, artifacts.__getitem__, threads=threads, device=device, signed=signed)
    return program.bind(dict(given)) if given else program


def _load(
    compiled: CompiledProgram, artifacts: Callable[[str], bytes], threads: int | None, device: int | Driver | None
) -> _Executor:
    match compiled.target.kind:
        case "cpu":
            if device is not None:
                raise DeviceError("the program is for the CPU, which has no device number")
            with uncollected():
                from .runtime.executor import Executor

            return Executor.load(compiled, artifacts, threads)
        case "cuda":
            from .runtime.cuda.executor import CudaExecutor

            return CudaExecutor.load(compiled, artifacts, device)
        case kind:
            raise DeviceError(f"the program is for {kind}, for which there is no runtime; compile it for cpu or cuda")
