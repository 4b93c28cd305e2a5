"""Every kind and dtype through NVIDIA's assembler, for three architectures by turns: accepted, nothing spilled, and as
much shared memory reserved as the PTX declares and the record of a program says.
"""

from __future__ import annotations

import re

from passes.compile import CompileRequest, compile_request
from tensorkiln.dtypes import DType
from tensorkiln.options import CompileOptions
from tests.codegen.assemblers import needs_assembler
from tests.compiled import target
from tests.numerics.cases import Case, graph_for
from tests.numerics.cases.drawn import for_each_of, parametrize
from tests.numerics.cases.kinds import KINDS_AND_DTYPES
from tests.numerics.cases.turns import of_kind

ARCHITECTURES = ("sm_80", "sm_90", "sm_120")
TURNS = (*ARCHITECTURES, *("" for _ in ARCHITECTURES))
"""As many dtypes of a kind are left to its others."""
ASSEMBLED = [(*each, arch) for each in KINDS_AND_DTYPES for arch in of_kind(TURNS, len(TURNS), *each) if arch]


def test_every_kind_and_dtype_is_assembled_for_every_architecture() -> None:
    for place in (0, 1):
        assert {(each[place], each[2]) for each in ASSEMBLED} == {
            (each[place], arch) for each in KINDS_AND_DTYPES for arch in ARCHITECTURES
        }


def shared_arrays(ptx: str) -> dict[str, dict[str, int]]:
    """By kernel, the bytes of each shared array that it names."""
    arrays = {found[2]: int(found[1]) // 8 * int(found[3] or 1) for found in _ARRAY.finditer(ptx)}
    found = list(_ENTRY.finditer(ptx))
    ends = [*(entry.start() for entry in found[1:]), len(ptx)]
    names = {entry[1]: set(_NAME.findall(ptx, entry.end(), end)) for entry, end in zip(found, ends, strict=True)}
    return {kernel: {name: arrays[name] for name in used if name in arrays} for kernel, used in names.items()}


_ENTRY = re.compile(r"\.entry (\w+)")
_NAME = re.compile(r"\w+")
_ARRAY = re.compile(r"^\s*\.shared \.align \d+ \.b(\d+) (\w+)(?:\[(\d+)\])?;", re.MULTILINE)


@needs_assembler
@parametrize(("kind", "dtype", "arch"), ASSEMBLED, drawn=2)
def test_a_kernel_is_assembled_without_spills(kind: str, dtype: DType, arch: str) -> None:
    def assembles(case: Case) -> None:
        request = CompileRequest(case.graph, target(f"cuda:{arch}"), CompileOptions(cubin=True))
        compilation = compile_request(request)
        for kernel in compilation.program.kernels:
            assert compilation.artifacts[str(kernel.binary)][:4] == b"\x7fELF"
            declared = shared_arrays(compilation.artifacts[str(kernel.artifact)].decode())[kernel.entry]
            assert kernel.resources is not None
            reserved = kernel.resources.shared_memory_bytes
            assert sum(declared.values()) == reserved, (kernel.entry, declared)
            # LLVM drops an array of which nothing is read: a product over one element passes nothing on.
            assert reserved in (0, kernel.static_shared_bytes), kernel.entry
            assert kernel.resources.spill_bytes == 0
            assert 0 < (kernel.resources.registers or 0) <= 255

    for_each_of(1, graph_for(kind, dtype, symbolic=True), assembles)
